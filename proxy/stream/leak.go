package stream

// leaks reports whether the end of the text may turn out to be a call that the
// server did not recognise.
func (h *hold) leaks() bool {
	if h.look == nil || h.unjudged {
		return false
	}
	free := len(h.text)
	if !h.o.Guard(func() { free = h.look.Free(seen(h.text)) }) {
		h.look = nil
	}
	return h.shown <= free && free < len(h.text)
}

// spot decides whether text that came is held. free is what was held only until
// it was known to be no call.
func (h *hold) spot() (free Piece) {
	switch {
	case h.what.Text || len(h.calls.list) > 0 || h.closing && h.holding:
	case h.leaks():
		h.holding, h.closing = true, false
	case h.holding:
		free = h.dequeue()
	}
	return free
}
