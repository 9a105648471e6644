package stream

import "github.com/rebound-llm/rebound/recovery"

// Piece is bytes for the client together with what they contain.
type Piece struct {
	Bytes    []byte
	Released recovery.Released
	Text     string
	ID       Identity
	Frame    []byte // the events among the bytes from which clients build the response's structure
	Seq      int    // number of the last event
}

// join is add without copying if p is empty.
func (p *Piece) join(q Piece) {
	if len(p.Bytes) == 0 {
		*p = q
		return
	}
	p.add(q)
}

// add appends a copy of a piece.
func (p *Piece) add(q Piece) {
	p.Bytes = append(p.Bytes, q.Bytes...)
	p.Released = max(p.Released, q.Released)
	p.Text += q.Text
	p.Frame = append(p.Frame, q.Frame...)
	p.Seq = max(p.Seq, q.Seq)
	if p.ID.ID == "" {
		p.ID = q.ID
	}
}

// queue collects pieces for one write.
type queue struct {
	Piece
	text []byte // of the pieces; joined once, because there may be many
}

// add appends a copy of a piece.
func (q *queue) add(p Piece) {
	q.text = append(q.text, p.Text...)
	p.Text = ""
	q.Piece.add(p)
}

// take empties the queue.
func (q *queue) take() Piece {
	p := q.Piece
	p.Text = string(q.text)
	*q = queue{}
	return p
}

// lend is take for a queue that keeps its memory: the piece is valid until the next add.
func (q *queue) lend() Piece {
	p := q.Piece
	p.Text = viewString(q.text)
	*q = queue{Piece: Piece{Bytes: p.Bytes[:0], Frame: p.Frame[:0]}, text: q.text[:0]}
	return p
}
