package transcript

// State describes how a request depends on what the account that serves it has stored,
// and so what a recovery may do with it. The zero State is that of a self-contained
// request. It is comparable.
type State struct {
	Kind    StateKind
	Stored  bool // the server stores the answer, under ids that the client may refer to later
	Resends bool // the client sends earlier stored answers again in full, with their ids; so it will send this one
	Bound   bool // it contains what only its account can read: a sealed history, a stored prompt
	Single  bool // two attempts at once would have two effects: it appends to a stored conversation, or is a job
	Job     bool // it runs in the background, so that a broken stream of it can be resumed
	Closed  bool // it ends with a command that must stay the last item
}

// StateKind is how much of the history a request contains.
type StateKind uint8

// The kinds.
const (
	Stateless   StateKind = iota // all of it
	Referencing                  // all, but some elements only as the ids under which the server stores them
	Chained                      // only the new elements: the server stores the rest
)

// Continues returns the id of what the request continues: an earlier answer or a stored
// conversation; "" if it continues neither.
func (b *Body) Continues() string { return b.settings().continues }

// State returns how the request depends on what the server has stored.
func (b *Body) State() State { return b.settings().state }

// MayMove reports whether another account can serve the request.
func (s State) MayMove() bool { return s.Kind == Stateless && !s.Bound }

// MayEdit reports whether messages may be rewritten.
func (s State) MayEdit() bool { return s.Kind == Stateless }

// MayFit reports whether the history may be made smaller; where MayEdit is false, only
// by removing whole messages.
func (s State) MayFit() bool { return s.Kind != Chained && !s.Closed }

// MayNote reports whether a note may be added that no server stores.
func (s State) MayNote() bool { return s.Kind != Chained && !s.Closed }

// MayContinue reports whether a second request may continue an answer that broke off. It may
// not if the client can later refer to the answer by an id that no server has stored, instead
// of sending it in full. kept means that the gateway stores the answer and resolves such ids.
func (s State) MayContinue(kept bool) bool {
	told := s.Kind == Stateless && (!s.Stored || s.Resends)
	return !s.Closed && (told || kept && s.Stored && !s.Single)
}

// MayRace reports whether two attempts may run at once.
func (s State) MayRace() bool { return !s.Single }
