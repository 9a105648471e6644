package transcript

// State is what a request leaves to the memory of the account that serves it,
// and so what a recovery may do with it. The zero State is of a request that has
// all in itself. It is comparable.
type State struct {
	Kind   StateKind
	Stored bool // the server keeps the answer, under ids that the client may name later
	Tells  bool // the client tells again in full what a server made, with its ids: so it will what is made now
	Bound  bool // it has what only its account can read or knows: a sealed history, a stored prompt
	Single bool // two at once would leave two traces: it is appended to a stored conversation, or is a job
	Job    bool // it runs on by itself, so that a stream of it which breaks can be taken up again
	Closed bool // it ends with a command, behind which nothing may stand
}

// StateKind is how much of the history a request has in itself.
type StateKind uint8

// The kinds.
const (
	Stateless   StateKind = iota // all of it
	Referencing                  // some elements by the ids that the server keeps them under
	Chained                      // only what is new: the rest is the server's
)

// String names the kind.
func (k StateKind) String() string {
	return [...]string{"stateless", "referencing", "chained"}[k]
}

// Continues is the id of what the request goes on from: an earlier answer, or a stored
// conversation; empty where it has all in itself.
func (b *Body) Continues() string { return b.settings().continues }

// State says what the request leaves to the server.
func (b *Body) State() State { return b.settings().state }

// MayMove reports whether another account can serve the request.
func (s State) MayMove() bool { return s.Kind == Stateless && !s.Bound }

// MayEdit reports whether messages may be rewritten.
func (s State) MayEdit() bool { return s.Kind == Stateless }

// MayFit reports whether the history may be made smaller: by whole messages where
// they must not be rewritten.
func (s State) MayFit() bool { return s.Kind != Chained && !s.Closed }

// MayNote reports whether a note may be added, which no server will remember.
func (s State) MayNote() bool { return s.Kind != Chained && !s.Closed }

// MayContinue reports whether an answer that broke off may be continued by another:
// not where the client may name it later by an id that the server never heard of,
// instead of telling what it was. kept says that somebody else knows then what it was.
func (s State) MayContinue(kept bool) bool {
	told := s.Kind == Stateless && (!s.Stored || s.Tells)
	return !s.Closed && (told || kept && s.Stored && !s.Single)
}

// MayRace reports whether two attempts may be under way at once.
func (s State) MayRace() bool { return !s.Single }
