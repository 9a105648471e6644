package agents

// overflows are scenarios of sessions that outgrow the model's window.
func overflows() []Scenario {
	loops := []string{LoopPython, LoopNode}
	refusals := dies("BadRequestError", loops...)
	return []Scenario{
		{
			Name: "overflow", Want: "a session of three windows goes on; the model refuses once, what follows arrives rewritten; the client's history stays whole",
			Files: partFiles(), Prompts: []string{readPrompt(parts)}, Play: longTask, End: keysTo(parts), Clients: append(loops[:2:2], Pi),
			Straight: []Check{unfinished}, StraightOf: refusals,
			Through: []Check{executed(readsTo(parts)...), refused(1, 1), asksToFit(parts+2, parts+3), outgrew(3), compressedOnwards, steady(6)},
		},
		{
			Name: "overflow-two-turns", Want: "the same over two turns of the user",
			Files: partFiles(), Prompts: []string{readPrompt(12), readPrompt(parts)}, Play: longTask, End: keysTo(parts), Clients: loops,
			StraightOf: refusals,
			Through:    []Check{executed(readsTo(parts)...), firstSays(keysTo(12)...), refused(1, 1), outgrew(3), compressedOnwards, steady(6)},
		},
		{
			Name: "overflow-same-ids", Want: "the same with a model that gives all its calls one id, so that nobody can tell runs of one task apart",
			Files: partFiles(), Prompts: []string{readPrompt(parts)}, Play: sameIDs(longTask), End: keysTo(parts), Clients: loops,
			StraightOf: refusals,
			// Not steady: the runs share what was shortened, and are not equally far; one may have to begin anew.
			// Where refusals name no numbers, they also share what each takes the window for, and are refused more often.
			Through: []Check{executed(readsTo(parts)...), whereStated(refused(0, 2)), outgrew(3), neverOver},
		},
		{
			Name: "overflow-astray", Want: "a note finds its path in a history that is rewritten, and both live side by side",
			Files: partFiles(), Prompts: []string{readPrompt(parts)}, Play: goesAstray, End: keysTo(parts), Clients: loops,
			StraightOf: refusals,
			Through:    []Check{guided(partName(astray)), repeated(readPart(astray), 1), refused(1, 1), outgrew(3), compressedOnwards, steady(7)},
		},
		{
			Name: "overflow-one-turn", Want: "eight results of one turn, more than a window together, are made to fit",
			Files: partFiles(), Prompts: []string{"Read part-01.txt to part-08.txt of parts and tell me all keys."},
			Play: allAtOnce, End: keysTo(atOnceParts), Clients: loops, StraightOf: refusals,
			Through: []Check{refused(1, 1), asked(3, 3), compressedOnwards},
		},
		{
			Name: "overflow-one-result", Want: "so is one result that is longer than a window",
			Files: bigFiles(), Prompts: []string{"Read parts/all.txt and tell me the last key."},
			Play: inOnePiece, End: []string{partKey(atOnceParts)}, Clients: loops, StraightOf: refusals,
			Through: []Check{refused(1, 1), asked(3, 3), compressedOnwards},
		},
	}
}

func keysTo(n int) (out []string) {
	for i := 1; i <= n; i++ {
		out = append(out, partKey(i))
	}
	return out
}

func readPart(i int) Call { return Call{Name: "read_file", Arguments: arguments("path", partName(i))} }

func readsTo(n int) (out []Call) {
	for i := 1; i <= n; i++ {
		c := readPart(i)
		if i%2 == 0 {
			c = Call{Name: "run_command", Arguments: arguments("command", "cat "+partName(i))}
		}
		out = append(out, c)
	}
	return out
}
