package transcript

// Document is JSON that is read and validated in one pass, by a Cursor. The
// zero Document is ready for Open. It is for one goroutine, and does not allocate.
type Document struct{ s scanner }

// Cursor steps through the members of one object or the elements of one array.
type Cursor struct {
	w    walker
	open bool // the current value was not passed yet
}

// Open begins to read raw, nested at most depth deep. ok is false if it is no
// object or array, or invalid.
func (d *Document) Open(raw []byte, depth int) (c Cursor, ok bool) {
	d.s = scanner{data: raw, limit: depth}
	i := d.s.begin()
	if i < 0 {
		return Cursor{}, false
	}
	if raw[i] != '{' && raw[i] != '[' {
		if i = d.s.value(i, 0); i >= 0 {
			d.s.end(i)
		}
		return Cursor{}, false
	}
	return Cursor{w: d.s.walk(i, 0)}, true
}

// End reports whether everything was valid, after the outermost cursor's Next
// returned false.
func (d *Document) End(c Cursor) bool { return d.s.err == nil && d.s.end(c.w.i) }

// Valid reports whether nothing invalid was met so far.
func (d *Document) Valid() bool { return d.s.err == nil }

// Next goes to the next member; false at the end and at what is invalid.
func (c *Cursor) Next() bool {
	if c.open && !c.w.skip() {
		return false
	}
	c.open = c.w.next()
	return c.open
}

// Name is the current member's decoded name, nil in an array. It is valid until Next.
func (c *Cursor) Name() []byte { return c.w.name }

// Value passes the current value and returns its bytes; nil if it is invalid.
func (c *Cursor) Value() []byte {
	c.open = false
	if !c.w.skip() {
		return nil
	}
	return c.w.value()
}

// Enter returns a cursor over the current value, which Leave must pass. ok is
// false if it is no object or array.
func (c *Cursor) Enter() (inner Cursor, ok bool) {
	d := c.w.s.data
	if c.w.val >= len(d) || d[c.w.val] != '{' && d[c.w.val] != '[' {
		return Cursor{}, false
	}
	return Cursor{w: c.w.s.walk(c.w.val, c.w.depth)}, true
}

// Leave goes on behind inner, whose Next has returned false, and returns the
// bytes of what it went through.
func (c *Cursor) Leave(inner Cursor) []byte {
	c.open = false
	if c.w.s.err != nil {
		return nil
	}
	c.w.to(inner.w.i)
	return c.w.value()
}
