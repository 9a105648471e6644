// Command sessions replays recorded agent sessions turn by turn through the stages that
// read what an agent did, with their state carried from one turn to the next as in the
// gateway, and counts what the model would have been told.
//
//	go run ./e2e/sessions [-sample N] [-v] FILE…
//
// A file is JSON lines, packed with gzip or not, of {"id", "messages"} and optionally
// "tools", "solved" and "exit", or one JSON object with "messages". They are those of Chat
// Completions; with "format": "messages" and optionally "system" those of the Messages API;
// with "input" and optionally "instructions" in their place the items of the Responses API.
// The models that made the sessions saw no note, so what follows a note shows what they did
// without it.
//
// Of each file it prints: sessions, turns, notes and how many there are for 100 turns;
// of the notes how many name something that neither the failing results nor their calls
// have ("fact"), are about a repetition, are empty (neither), and say what was said
// before in the session; stops, and those in sessions that were solved; and the runs of
// six equal calls with equal results that were not told firmly, where line numbers of
// shells, clocks, process ids, durations and addresses do not make results differ.
package main
