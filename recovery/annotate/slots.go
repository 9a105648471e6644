package annotate

// slot is a place in a template that a conversation fills.
type slot string

// The slots. All values are bounded, on one line, and marked as data where they
// come from a tool, a call or a definition.
const (
	slotTool    slot = "tool"    // name of the tool that failed
	slotProgram slot = "program" // program that failed in a command line
	slotCwd     slot = "cwd"     // working directory, as a result or the instructions state it
	slotShell   slot = "shell"   // an offered tool that runs commands
	slotWriter  slot = "writer"  // an offered tool that writes files, or a shell
	slotFinder  slot = "finder"  // an offered tool that finds or lists files, or a shell

	slotWorked      slot = "worked"      // earlier command with a program like the missing one, that did not fail
	slotExecutable  slot = "executable"  // path of the missing program, as an earlier result printed it
	slotAlternative slot = "alternative" // another program that usually does the same
	slotMeant       slot = "meant"       // program that a misspelt one probably is

	slotWrongTool   slot = "wrong_tool"   // name that is no tool
	slotNearestTool slot = "nearest_tool" // offered tool that comes closest to it
	slotTools       slot = "tools"        // names of the offered tools
	slotBasicTools  slot = "basic_tools"  // those that run, read, find and write

	slotPath    slot = "path"    // path that failed
	slotName    slot = "name"    // its last element
	slotParent  slot = "parent"  // its directory
	slotFound   slot = "found"   // where the same name is, as earlier results printed it
	slotSpelled slot = "spelled" // the same name in other capitals
	slotSimilar slot = "similar" // the closest name that was seen
	slotLost    slot = "lost"    // its last element, where the conversation shows no place of it
	slotSought  slot = "sought"  // its last element, where a search for that found nothing

	slotRefuser slot = "refuser" // service that refused an account, where no file is meant
	slotWhoami  slot = "whoami"  // command that shows the account which it saw

	slotInterpreted slot = "interpreted" // command that runs a script which is not executable
	slotWritable    slot = "writable"    // directory that the agent wrote to before

	slotTimeoutParameter slot = "timeout_parameter"    // the tool's own, for its time limit
	slotBackground       slot = "background_parameter" // the tool's own, to run in the background
	slotLimit            slot = "limit"                // time limit that was exceeded
	slotSmaller          slot = "smaller"              // a smaller run of the same program
	slotPage             slot = "page"                 // the tool, where it works on a page in a browser
	slotLook             slot = "look"                 // an offered tool that shows such a page

	slotProblem     slot = "problem"        // what of a call does not fit the tool's definition
	slotParameter   slot = "parameter"      // parameter that is wrong
	slotSchema      slot = "schema"         // its schema
	slotParameters  slot = "parameters"     // all that the tool takes
	slotRequired    slot = "required"       // those that it needs
	slotOption      slot = "wrong_option"   // command-line option that is wrong
	slotValueOption slot = "option"         // command-line option whose value is wrong
	slotNearOption  slot = "nearest_option" // option that exists and comes closest
	slotChoices     slot = "allowed"        // allowed values, as the message names them

	slotEdited slot = "edited"          // file of an edit that was not applied
	slotGiven  slot = "given"           // line of the text to replace that the file does not have
	slotStands slot = "stands"          // line of the file that was probably meant
	slotBlank  slot = "blank"           // line that the file has with other white space
	slotTimes  slot = "times"           // how often the text to replace stands in the file, if more than once
	slotEvery  slot = "every_parameter" // the tool's own, to replace every occurrence

	slotPlace  slot = "place"  // file and line of a syntax error
	slotInline slot = "inline" // program that got code inside of a command line

	slotHost      slot = "host"          // host that was not reached
	slotLocal     slot = "local_service" // the same, if it is this machine
	slotRemote    slot = "remote_host"   // the same, if it is another one
	slotOtherHost slot = "other_host"    // host that answered earlier
	slotCached    slot = "cached"        // earlier call that got something from the same host

	slotWait  slot = "wait"  // how long a limit says to wait
	slotSleep slot = "sleep" // command that waits so long

	slotCreated slot = "created" // temporary files that this session made
)

// slotNames are the slots that a template may have.
func slotNames() []string {
	var out []string
	for _, s := range [...]slot{slotTool, slotProgram, slotCwd, slotShell, slotWriter, slotFinder, slotWorked, slotExecutable, slotAlternative, slotMeant,
		slotWrongTool, slotNearestTool, slotTools, slotBasicTools, slotPath, slotName, slotParent, slotFound, slotSpelled, slotSimilar, slotLost, slotSought,
		slotRefuser, slotWhoami, slotInterpreted, slotWritable, slotTimeoutParameter, slotBackground, slotLimit, slotSmaller, slotPage, slotLook, slotProblem, slotParameter, slotSchema,
		slotParameters, slotRequired, slotOption, slotValueOption, slotNearOption, slotChoices, slotEdited, slotGiven, slotStands, slotBlank, slotTimes, slotEvery,
		slotPlace, slotInline, slotHost, slotLocal, slotRemote, slotOtherHost, slotCached,
		slotWait, slotSleep, slotCreated} {
		out = append(out, string(s))
	}
	return out
}

// fill is a slot's value, "" if the conversation does not tell. Values are
// computed once.
func (s *scene) fill(name slot) string {
	if v, ok := s.memo[name]; ok {
		return v
	}
	v := s.value(name)
	s.memo[name] = v
	return v
}

func (s *scene) value(name slot) string {
	switch name {
	case slotTool:
		return quoted(s.f.Tool)
	case slotProgram:
		return quoted(s.program())
	case slotCwd:
		return quoted(s.cwd())
	case slotShell:
		return s.toolFor(Shell)
	case slotWriter:
		return s.writer()
	case slotFinder:
		return s.finder()
	case slotWorked, slotExecutable, slotAlternative, slotMeant:
		return s.commandValue(name)
	case slotWrongTool, slotNearestTool, slotTools, slotBasicTools:
		return s.toolValue(name)
	case slotPath, slotName, slotParent, slotFound, slotSpelled, slotSimilar, slotLost, slotSought:
		return s.fileValue(name)
	case slotRefuser, slotWhoami:
		who, command := s.refuser()
		if name == slotWhoami {
			return quoted(command)
		}
		return who
	case slotInterpreted:
		return quoted(s.interpreted())
	case slotWritable:
		return quoted(s.writable())
	case slotCreated:
		return listed(s.created(), 4, "and")
	case slotTimeoutParameter, slotBackground, slotLimit, slotSmaller, slotPage, slotLook:
		return s.timeoutValue(name)
	case slotProblem, slotParameter, slotSchema, slotParameters, slotRequired:
		return s.callValue(name)
	case slotOption, slotValueOption, slotNearOption, slotChoices:
		return s.optionValue(name)
	case slotEdited, slotGiven, slotStands, slotBlank, slotTimes, slotEvery:
		return s.editValue(name)
	case slotPlace:
		return quoted(s.place())
	case slotInline:
		return quoted(s.inline())
	case slotHost, slotLocal, slotRemote, slotOtherHost, slotCached:
		return s.networkValue(name)
	case slotWait, slotSleep:
		return s.waitValue(name)
	}
	return ""
}
