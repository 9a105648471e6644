package load

// Bodies is what a connection of a load sends, one after the other: for a small
// size one coding agent's conversation, for larger ones some, which grow by a turn
// from request to request and have size bytes on average. Equal arguments give
// equal bytes; sessions differ. It is for measurements of single steps over the
// very bodies of a load.
func Bodies(model string, size int, stream bool, session int) [][]byte {
	return bodies(model, size, stream, session)
}
