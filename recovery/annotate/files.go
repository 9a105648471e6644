package annotate

import (
	"bytes"
	"cmp"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// inQuotes is what a message puts between quotes; an apostrophe opens none.
var inQuotes = recovery.NewPattern(`(?:^|[^\pL\d])(?:'([^'\n]{1,300})'|"([^"\n]{1,300})"|‘([^’\n]{1,300})’|“([^”\n]{1,300})”|\x60([^\x60'\n]{1,300})[\x60'])`)

// shellHead is what a shell puts before its messages.
var shellHead = recovery.NewPattern(`^(?:(?:\S*/)?-?(?:ba|z|da|k|a|fi)?sh|\(eval\))(?:: line \d+|:\d+|: \d+)?: (?:(?:cd|source|\.|exec): )?`)

// fileName is a word that looks like a file's name.
var fileName = recovery.NewPattern(`^[\w.-]{1,80}\.[A-Za-z][A-Za-z0-9]{0,5}$`)

// failedPath is the path that the failure is about, "" if nothing names one.
func (s *scene) failedPath() string {
	if who, _ := s.refuser(); who != "" {
		return ""
	}
	p := strings.TrimPrefix(s.namedPath(), "file://")
	if file, _, ok := strings.Cut(p, "::"); ok && fileName.MatchString(base(file)) {
		p = file // with a test in it
	}
	if strings.Contains(p, "://") || strings.Contains(p, "%2F") || strings.Contains(p, "@") { // an address, or an account
		return ""
	}
	return p
}

// namedPath is the path that the call gives, or the message names.
func (s *scene) namedPath() string {
	line := shellHead.ReplaceAllString(s.f.Line, "")
	quoted := s.quotedPath(line)
	if p := s.editedPath(); p != "" && s.made.Line() == "" {
		if quoted != p && absolute(quoted) && strings.Contains(s.f.Arguments, quoted) { // one of two in the call
			return quoted
		}
		return p
	}
	if p := cmp.Or(quoted, s.givenPath(line), plainPath(line), s.givenPath(s.content)); p != "" {
		return p
	}
	if s.f.Category == recovery.FileNotFound {
		for line := range strings.Lines(s.content) {
			if p := s.quotedPath(line); p != "" && absent.MatchString(line) {
				return p
			}
		}
		if s.unnamed() != "" {
			return ""
		}
		return s.onlyFile()
	}
	if files, _ := s.written(&s.made); len(files) > 0 && s.f.Category != recovery.FileNotFound {
		return files[len(files)-1] // what could not be written
	}
	return ""
}

// wordsOnly is a message that says without any name what a program did not get
// done, and then what the system said; opening is said of files.
var (
	wordsOnly = recovery.NewPattern(`^[\w.+-]{1,64}: [A-Za-z][A-Za-z' ]{8,100}: No such file or directory$`)
	opening   = recovery.NewPattern(`(?i)\b(?:open|read|access|stat|load|find|input|file|archive|director)`)
)

// unnamed is the program whose message names nothing that is missing: other
// things than files are looked up in files, too.
func (s *scene) unnamed() string {
	text := strings.TrimSuffix(s.f.Line, "No such file or directory")
	if len(s.parts) == 1 && wordsOnly.MatchString(s.f.Line) && !opening.MatchString(text) {
		return s.program()
	}
	return ""
}

// otherKind is what programs say of a file that is there, but of another kind
// than they read.
var otherKind = recovery.NewPattern(`(?i)\b(?:file )?format (?:is )?not recogni[sz]ed|\bnot in (?:gzip|bzip2|xz|lzma|zstd|lz4) format|` +
	`cannot find zipfile directory|\bnot a (?:valid )?(?:zip ?file|zip archive|zip or jar|gzipped file|tar archive|tar file|bzip2 file|database|dynamic executable)\b|` +
	`does not look like a tar archive|no valid OpenPGP data|unknown suffix|invalid magic|bad magic number|cannot identify image file|not an ELF file|` +
	`^base(?:32|64): invalid input`)

// unfit is the file of which a message says that.
func (s *scene) unfit() string {
	said := otherKind.MatchString(s.f.Line) || otherKind.MatchString(s.content)
	if program := s.program(); !said || program == "" || !strings.HasPrefix(s.content, program+":") && !strings.Contains(s.content, "\n"+program+":") {
		return "" // or a script says it of one of its own files
	}
	p := cmp.Or(s.givenPath(s.f.Line), s.givenPath(s.content), s.onlyFile())
	if strings.Contains(p, "://") {
		return ""
	}
	return p
}

// operands are those of a program, without addresses, and with the files that a
// form or a body takes its values from.
func operands(v trajectory.Invocation) (out []string) {
	for _, w := range v.Operands() {
		if strings.Contains(w, "://") && !strings.HasPrefix(w, "file://") {
			continue
		}
		if v.Program == "curl" {
			w = w[strings.LastIndexByte(w, '@')+1:]
		}
		out = append(out, w)
	}
	return out
}

// onlyFile is the file in the failing command line, "" for none or several.
func (s *scene) onlyFile() (found string) {
	for _, v := range s.parts {
		for _, w := range operands(v) {
			if fileName.MatchString(base(w)) && w != found {
				if found != "" {
					return ""
				}
				found = w
			}
		}
	}
	return found
}

// quotedPath is what the message puts in quotes, best what looks like a path,
// else what stands in the command.
func (s *scene) quotedPath(line string) (best string) {
	if strings.HasPrefix(line, "{") {
		return "" // an object: everything is in quotes
	}
	line, _, _ = strings.Cut(line, " -> ") // what was to become what
	for _, m := range inQuotes.FindAllStringSubmatch(line, 16) {
		given := cmp.Or(m[1:]...)
		used := strings.Contains(s.made.Line(), given)
		if strings.Contains(given, " ") && !used {
			continue
		}
		if best == "" || strings.ContainsAny(given, `/\.`) || used && !strings.ContainsAny(best, `/\.`) {
			best = given
		}
	}
	return best
}

// givenPath is the argument of the command that the message names; the longest counts.
func (s *scene) givenPath(line string) (best string) {
	for _, v := range s.parts {
		words := append(operands(v), v.Targets...)
		if strings.Contains(v.Words[0], "/") {
			words = append(words, v.Words[0])
		}
		for _, w := range words {
			plain := !strings.ContainsAny(w, "/. ") // perhaps only a word, as in "pip install"
			if len(w) > len(best) && len(w) > 1 && hasWord(line, w) && (!plain || strings.Contains(line, w+":")) {
				best = w
			}
		}
	}
	return best
}

// plainPath is what in a line looks like a path, or else like a file's name.
func plainPath(line string) (named string) {
	for i := 0; i < len(line); i++ {
		if !isPath(line[i]) {
			continue
		}
		end := i
		for end < len(line) && isPath(line[end]) {
			end++
		}
		t := trimmed(line[i:end])
		i = end
		switch {
		case len(t) < 2 || strings.HasPrefix(t, "//"):
		case strings.Contains(t, "/") && (t[0] == '/' || t[0] == '.' || t[0] == '~' || strings.Contains(base(t), ".")):
			return t
		case fileName.MatchString(t):
			named = t
		}
	}
	return named
}

// start is the directory from which a failing relative path was meant.
func (s *scene) start() string {
	dir := ""
	for _, v := range s.parts {
		if args := v.Operands(); v.Program == "cd" && len(args) == 1 {
			if args[0] == s.failedPath() {
				break // it did not get there
			}
			dir = join(dir, args[0])
		}
	}
	return join(s.cwd(), dir)
}

// sights are what the conversation knows about a path that failed.
type sights struct {
	found   []string // the same last element elsewhere, the best first
	spelled string   // in other capitals
	similar string   // the closest other name
}

// locate looks for the path that failed in what the conversation showed: for its
// last element, and where that is not known for the one before.
func (s *scene) locate() *sights {
	if s.seen != nil {
		return s.seen
	}
	s.seen = &sights{}
	want := s.failedPath()
	for range 3 {
		name := base(trimmed(want))
		if len(name) < 2 || len(name) > 200 {
			break
		}
		if s.look(name, want); len(s.seen.found) > 0 || s.seen.spelled != "" || s.seen.similar != "" {
			break
		}
		if want = strings.TrimSuffix(trimmed(want), name); want == s.cwd()+"/" || s.reached(trimmed(want)) {
			break
		}
	}
	if want != s.failedPath() {
		s.seen.found = nil // the directory exists: that says nothing of the file
	}
	return s.seen
}

// reached reports whether an earlier call used a directory as it is.
func (s *scene) reached(dir string) bool {
	return slices.ContainsFunc(s.steps(), func(c *call) bool {
		return c.Line() == "" && trimmed(trajectory.PathIn(c.Arguments)) == dir && s.worked(c)
	})
}

// look looks for a name.
func (s *scene) look(name, want string) {
	wanted := join(s.start(), want)
	type candidate struct {
		full  string
		score int
	}
	var list []candidate
	s.mentions(name, func(full string) bool {
		full = clean(full)
		if full == clean(want) || join(s.cwd(), full) == wanted || slices.ContainsFunc(list, func(c candidate) bool { return c.full == full || strings.HasSuffix(c.full, "/"+full) }) {
			return true
		}
		list = append(list, candidate{full, common(full, want)})
		return len(list) < 24
	})
	slices.SortStableFunc(list, func(a, b candidate) int { return b.score - a.score })
	for _, c := range list {
		if len(s.seen.found) < 3 && c.score == list[0].score {
			s.seen.found = append(s.seen.found, join(s.shown(c.full), c.full))
		}
	}
	if len(list) == 0 {
		s.resemble(name, wanted)
	}
}

// shown is the directory to put before a relative path: the working directory,
// where the agent used an absolute path.
func (s *scene) shown(full string) string {
	if absolute(full) || !absolute(s.failedPath()) {
		return ""
	}
	return s.cwd()
}

// common is how many elements two paths have in common at their ends.
func common(a, b string) (n int) {
	slash := func(r rune) bool { return r == '/' || r == '\\' }
	x, y := strings.FieldsFunc(a, slash), strings.FieldsFunc(b, slash)
	for n < len(x) && n < len(y) && x[len(x)-1-n] == y[len(y)-1-n] {
		n++
	}
	return n
}

// maxResembling bounds the text in which similar names are looked for, in bytes.
const maxResembling = 192 << 10

// resemble looks for the same name in other capitals, and for the closest one.
func (s *scene) resemble(name, wanted string) {
	least := trajectory.Slips(name) + 1
	if len(name)-len(path.Ext(name)) < 3 {
		least = 1 // too short: everything is close
	}
	budget := maxResembling
	s.results("", func(i int, text string) bool {
		text = text[:min(len(text), budget)]
		budget -= len(text)
		told := sync.OnceValue(func() where { return s.whereOf(i) }) // nothing in most texts needs it
		for at := 0; at < len(text); at++ {
			if !isPath(text[at]) {
				continue
			}
			from := at
			for at < len(text) && isPath(text[at]) {
				at++
			}
			t := trimmed(text[from:at])
			if from == 0 || text[from-1] == '\n' {
				if line := lineAt(text, from); len(line) <= len(name)+8 && strings.Contains(line, " ") && told().listing {
					t = strings.TrimSpace(line) // a name with spaces
				}
			}
			last := base(t)
			folded := last != name && strings.EqualFold(last, name)
			d := likeness(name, last, least)
			abbreviated := d >= least && abbreviates(name, last)
			if last == name || !folded && d >= least && !abbreviated || denies(lineAt(text, from)) || strings.HasPrefix(t, "//") || partial(text, from, at) {
				continue
			}
			w := told()
			full, ok := w.resolved(w.nested(text, from, t))
			if !ok || join(s.cwd(), full) == wanted || !strings.ContainsAny(full, "./") && !w.listing {
				continue
			}
			if full = join(s.shown(clean(full)), clean(full)); folded {
				s.seen.spelled = full
				return false
			}
			if !abbreviated {
				s.seen.similar, least = full, d
			} else if s.seen.similar == "" && path.Dir(join(s.cwd(), full)) == path.Dir(wanted) {
				s.seen.similar = full
			}
		}
		return budget > 0
	})
}

// likeness is how far a name is from the one that was meant, or limit: names
// with another ending more are close, others by their letters.
func likeness(name, last string, limit int) int {
	switch {
	case len(last) < 2 || len(last) > len(name)+8 || last[0]|0x20 != name[0]|0x20 && last[len(last)-1] != name[len(name)-1]:
		return limit
	case limit > 1 && strings.HasPrefix(last, name+"."):
		return 1
	case limit > 1 && furtherNamed(name, last):
		return limit - 1
	case len(last) > len(name)+3:
		return limit
	}
	return trajectory.Distance(name, last, limit-1)
}

// versioned is what follows a name with a version.
var versioned = recovery.NewPattern(`^[-_]v?\d+(?:\.\d+)+(?:-SNAPSHOT)?$`)

// furtherNamed reports whether last is name with a further word, or a version, before its ending.
func furtherNamed(name, last string) bool {
	ext := path.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	rest, ok := strings.CutPrefix(strings.TrimSuffix(last, ext), stem)
	if ok && len(stem) > 2 && len(ext) > 1 && ext == path.Ext(last) && versioned.MatchString(rest) {
		return true
	}
	return ok && len(stem) > 4 && ext == path.Ext(last) && len(rest) > 1 && strings.ContainsAny(rest[:1], "-_.")
}

// abbreviates reports whether one of two names of a kind is the beginning of the other.
func abbreviates(name, last string) bool {
	ext := path.Ext(name)
	a, b := strings.TrimSuffix(name, ext), strings.TrimSuffix(last, ext)
	return ext == path.Ext(last) && min(len(a), len(b)) > 2 && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a))
}

// meantPath is a path that the message itself proposes.
var meantPath = recovery.NewPattern(`(?i)(?:did you mean|do you mean|perhaps you meant)(?: this\?)?[:\s]*['"‘\x60]?([^\s'"’\x60?,]{2,300})`)

// noName are words that follow "did you mean" and propose nothing.
var noName = []string{"this", "that", "these", "to", "one", "any", "the", "a", "an"}

// suggested is the path that the message itself proposes.
func (s *scene) suggested() string {
	if m := meantPath.FindStringSubmatch(s.f.Line + "\n" + s.content); m != nil && !slices.Contains(noName, strings.ToLower(m[1])) {
		return trimmed(m[1])
	}
	return ""
}

// parent is the directory of the path that failed.
func (s *scene) parent() string {
	p := s.failedPath()
	if dir := path.Dir(p); p == "" || dir != "." && !strings.Contains(p, `\`) {
		return strings.TrimSuffix(dir, ".")
	}
	return s.start()
}

// lost is the last element of the path that failed, where no result shows
// anything like it and it is neither a pattern nor where to go, nor being made.
func (s *scene) lost() string {
	if s.unmade() != "" || slices.ContainsFunc(s.parts, func(v trajectory.Invocation) bool {
		return v.Program == "cd" && slices.Contains(v.Words, s.failedPath())
	}) {
		return ""
	}
	if at := s.locate(); len(at.found) > 0 || at.spelled != "" || at.similar != "" || strings.ContainsAny(s.failedPath(), "*?") {
		return ""
	}
	return base(trimmed(s.failedPath()))
}

// making is what is said of a file that a program was to make.
var making = recovery.NewPattern(`(?i)\b(?:cannot|can't|could not|couldn't|unable to|failed to) (?:create (?:regular )?file|open lock ?file|create lock ?file)\b`)

// blocked is the path that leads through a file, where a directory is asked for.
func (s *scene) blocked() string {
	if strings.Contains(strings.ToLower(s.f.Line), "not a directory") || strings.Contains(s.f.Line, "ENOTDIR") {
		return s.failedPath()
	}
	return ""
}

// unmade is the directory that a call wanted to write into, where it is missing.
func (s *scene) unmade() string {
	files, dirs := s.written(&s.made)
	if p := s.failedPath(); (slices.Contains(append(files, dirs...), p) || making.MatchString(s.f.Line)) && path.Dir(p) != "." && s.oldText() == "" && !s.known(path.Dir(p)+"/", s.turn) {
		return path.Dir(p)
	}
	return ""
}

// nothingFound is what searches say of nothing.
var nothingFound = recovery.NewPattern(`(?i)^\W*(?:no (?:files?|match(?:es)?|results?|output)\b.{0,60}|` +
	`0 (?:files?|match(?:es)?|results?)\b.{0,40}|\(no output\)|\(empty\)|nothing (?:was )?found.{0,40}|` +
	`(?:\[\]|\{\})|(?:command )?exit(?:ed)?(?: with)? code:? [01])?\W*$`)

// sought is the last element of the path that failed, where a search for it
// found nothing before.
func (s *scene) sought() string {
	name := base(trimmed(s.failedPath()))
	if len(name) < 3 {
		return ""
	}
	stem := strings.TrimSuffix(name, path.Ext(name))
	if len(stem) < 4 {
		stem = name
	}
	for _, c := range s.steps() {
		if strings.Contains(c.Arguments, stem) && s.lists(c) {
			if text := strings.TrimSpace(output(s.list[c.answer].Text())); len(text) < 200 && nothingFound.MatchString(text) {
				return name
			}
			return ""
		}
	}
	return ""
}

// written are the files and directories that a call writes, as far as its
// arguments tell.
func (s *scene) written(c *trajectory.Call) (files, dirs []string) {
	if c.Line() == "" {
		if p := trajectory.PathIn(c.Arguments); p != "" && s.usedFor(c.Tool, trajectory.UseWrite) {
			files = append(files, p)
		}
		return files, nil
	}
	cd := ""
	for _, v := range trajectory.Invocations(c.Line()) {
		args, out := v.Operands(), v.Targets
		switch v.Program {
		case "cd":
			if len(args) == 1 {
				cd = join(cd, args[0])
			}
		case "touch", "tee":
			out = append(out, args...)
		case "cp", "mv", "ln", "install":
			if len(args) > 1 && !strings.HasSuffix(args[len(args)-1], "/") {
				out = append(out, args[len(args)-1])
			}
		case "mkdir":
			for _, a := range args {
				dirs = append(dirs, join(cd, a))
			}
		case "grep", "find", "ls", "ssh", "scp", "set": // whose -o is no file
		default:
			for i, w := range v.Words[:len(v.Words)-1] {
				if w == "-o" || w == "-O" && v.Program == "wget" || w == "--output" || v.Program == "tar" && i == 1 && strings.HasSuffix(w, "f") && strings.Contains(w, "c") {
					out = append(out, v.Words[i+1])
				}
			}
		}
		for _, f := range out {
			files = append(files, join(cd, f))
		}
	}
	unknown := func(p string) bool {
		return p == "" || len(p) > 200 || strings.HasPrefix(p, "/dev/") || strings.ContainsAny(p, "$*?{`(\n")
	}
	return slices.DeleteFunc(files, unknown), slices.DeleteFunc(dirs, unknown)
}

// writable is the directory that the agent wrote to last without trouble, other
// than the one that is refused now.
func (s *scene) writable() string {
	denied := path.Dir(join(s.start(), s.failedPath()))
	for _, c := range s.steps() {
		files, dirs := s.written(&c.Call)
		for _, f := range files {
			dirs = append(dirs, path.Dir(clean(f)))
		}
		for _, d := range slices.Backward(dirs) {
			full := join(s.cwd(), d)
			if full == denied || d == denied || denied != "." && denied != "/" && strings.HasPrefix(full+"/", denied+"/") || elevated.MatchString(c.Line()) {
				continue
			}
			if s.worked(c) {
				return full
			}
		}
	}
	return ""
}

// temporary are names of files that nobody misses.
var temporary = recovery.NewPattern(`(?i)^(?:/private)?/(?:var/)?tmp/|^/var/folders/|\.(?:tmp|temp|log|out|bak|cache|tar|tgz|gz|xz|bz2|zip|zst|o|pyc|core|dump|trace|prof)$|(?:^|/)(?:tmp|temp)[^/]*$`)

// created are temporary files that calls of this session made: a call wrote
// them without trouble, and nothing earlier in the conversation knows them.
func (s *scene) created() (out []string) {
	for _, c := range s.steps() {
		files, _ := s.written(&c.Call)
		for _, f := range files {
			f = clean(f)
			if len(out) < 4 && temporary.MatchString(f) && !slices.Contains(out, f) && !s.known(base(f), c.at) && s.worked(c) && !elevated.MatchString(c.Line()) {
				out = append(out, f)
			}
		}
	}
	return out
}

// known reports whether anything before message i names a file.
func (s *scene) known(name string, i int) bool {
	return slices.ContainsFunc(s.list[:i], func(m transcript.Message) bool {
		return m.Role != transcript.RoleAssistant && bytes.Contains(m.Raw(), []byte(name))
	})
}
