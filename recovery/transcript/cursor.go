package transcript

// Document reads and validates JSON in one pass, by a Cursor. The zero Document is
// ready for Open. It is not safe for concurrent use and does not allocate.
type Document struct{ s scanner }

// Cursor steps through the members of one object or the elements of one array.
type Cursor struct {
	w    walker
	open bool // the cursor is still before the current value
}

// Open starts reading raw, which may have depth levels of nesting. ok is false if it
// is no object or array.
func (d *Document) Open(raw []byte, depth int) (c Cursor, ok bool) {
	d.s = scanner{data: raw, limit: depth}
	i := d.s.begin(0)
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

// Valid reports whether the bytes read so far are valid.
func (d *Document) Valid() bool { return d.s.err == nil }

// Next goes to the next member; it returns false at the end and on invalid JSON.
func (c *Cursor) Next() bool {
	if c.open && !c.w.skip() {
		return false
	}
	c.open = c.w.next()
	return c.open
}

// Name returns the current member's decoded name, nil in an array. It is valid until Next.
func (c *Cursor) Name() []byte { return c.w.name }

// Value passes the current value and returns its bytes; nil if it is invalid.
func (c *Cursor) Value() []byte {
	c.open = false
	if !c.w.skip() {
		return nil
	}
	return c.w.value()
}

// Enter returns a cursor over the current value. The caller passes it to Leave
// afterwards. ok is false if the value is no object or array.
func (c *Cursor) Enter() (inner Cursor, ok bool) {
	d := c.w.s.data
	if c.w.val >= len(d) || d[c.w.val] != '{' && d[c.w.val] != '[' {
		return Cursor{}, false
	}
	return Cursor{w: c.w.s.walk(c.w.val, c.w.depth)}, true
}

// Leave moves behind the value of inner, whose Next has returned false, and returns
// the bytes of that value.
func (c *Cursor) Leave(inner Cursor) []byte {
	c.open = false
	if c.w.s.err != nil {
		return nil
	}
	c.w.endAt(inner.w.i)
	return c.w.value()
}
