package recovery

// Did notes an action of whoever delivers the answer, for the response header
// and the request's event. Like the rest of an exchange it belongs to the one
// goroutine that owns it: attempts that may yet lose do not call it.
func (x *Exchange) Did(action string) { x.act(action) }
