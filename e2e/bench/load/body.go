package load

// Body is the body of a chat completion as a load sends it: a coding agent's
// history of tool calls and results, of size bytes, or of the fewest that a
// conversation needs. Equal arguments give equal bytes; sessions differ. It is
// for measurements of single steps over the very bodies of a load.
func Body(model string, size int, stream bool, session int) []byte {
	return conversation(model, size, stream, session)
}
