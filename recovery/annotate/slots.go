package annotate

// slots are the places in a template that a conversation fills, in the order of
// the documentation in chains.yaml, which says what each one is. A value is
// bounded, on one line, and marked as data where it comes from a tool, a call or
// a definition; it is "" where the conversation does not tell.
var slots = [...]struct {
	name string
	fill func(*scene) string
}{
	{"tool", func(s *scene) string { return quoted(s.f.Tool) }},
	{"program", func(s *scene) string { return quoted(s.program()) }},
	{"cwd", func(s *scene) string { return quoted(s.cwd()) }},
	{"writer", (*scene).writer},
	{"finder", (*scene).finder},

	{"unbuilt", func(s *scene) string { return quoted(s.unbuilt()) }},
	{"bashism", (*scene).bashism},
	{"executable", func(s *scene) string { return quoted(s.executable()) }},
	{"alternative", func(s *scene) string { return quoted(s.alternative()) }},
	{"stand_in", (*scene).standIn},
	{"meant", func(s *scene) string { return quoted(s.meant()) }},

	{"wrong_tool", func(s *scene) string { return quoted(s.wrongTool()) }},
	{"nearest_tool", func(s *scene) string { return quoted(s.nearestTool()) }},
	{"tools", (*scene).toolNames},

	{"path", func(s *scene) string { return quoted(s.failedPath()) }},
	{"name", func(s *scene) string { return quoted(base(trimmed(s.failedPath()))) }},
	{"parent", func(s *scene) string { return quoted(s.parent()) }},
	{"blocked", func(s *scene) string { return quoted(s.blocked()) }},
	{"unmade", func(s *scene) string { return quoted(s.unmade()) }},
	{"found", func(s *scene) string { return listed(s.locate().found, 3, "or") }},
	{"spelled", func(s *scene) string { return quoted(s.locate().spelled) }},
	{"similar", func(s *scene) string { return quoted(s.locate().similar) }},
	{"suggested", func(s *scene) string { return quoted(s.suggested()) }},
	{"unfit", func(s *scene) string { return quoted(s.unfit()) }},
	{"unnamed", func(s *scene) string { return quoted(s.unnamed()) }},
	{"lost", func(s *scene) string { return quoted(s.lost()) }},
	{"sought", func(s *scene) string { return quoted(s.sought()) }},

	{"refuser", func(s *scene) string { who, _ := s.refuser(); return who }},
	{"whoami", func(s *scene) string { _, command := s.refuser(); return quoted(command) }},
	{"open_places", func(s *scene) string { return quoted(s.openPlaces()) }},
	{"port", func(s *scene) string { return quoted(s.port()) }},
	{"read_only", func(s *scene) string { return quoted(s.readOnly()) }},
	{"interpreted", func(s *scene) string { return quoted(s.interpreted()) }},
	{"privileged", func(s *scene) string { return quoted(s.privileged()) }},
	{"outside", func(s *scene) string { return quoted(s.outside()) }},
	{"writable", func(s *scene) string { return quoted(s.writable()) }},

	{"timeout_parameter", func(s *scene) string { return quoted(s.longer()) }},
	{"limit", func(s *scene) string { return quoted(s.limit()) }},
	{"smaller", (*scene).smallerRun},
	{"page", func(s *scene) string { return quoted(s.page()) }},
	{"silent_host", func(s *scene) string { return quoted(s.silent()) }},
	{"awaited", (*scene).awaited},
	{"remote_tool", func(s *scene) string { return quoted(s.remote()) }},
	{"look", func(s *scene) string { return quoted(s.showsPage()) }},

	{"problem", func(s *scene) string { return s.flaw().text }},
	{"parameter", func(s *scene) string { return quoted(s.flaw().param) }},
	{"schema", func(s *scene) string { return quoted(s.schema()) }},
	{"relative", func(s *scene) string { return quoted(s.relative()) }},
	{"wrong_option", func(s *scene) string { return quoted(s.option(true)) }},
	{"option", func(s *scene) string { return quoted(s.option(false)) }},
	{"nearest_option", func(s *scene) string { return quoted(s.nearestOption()) }},
	{"value", (*scene).value},
	{"lack", func(s *scene) string { return quoted(s.lack()) }},
	{"allowed", func(s *scene) string { return quoted(s.allowed()) }},

	{"edited", func(s *scene) string { return quoted(s.editedPath()) }},
	{"given", func(s *scene) string { return quoted(s.differs(false).given) }},
	{"stands", func(s *scene) string { return quoted(s.differs(false).stands) }},
	{"blank", func(s *scene) string { return quoted(s.differs(true).given) }},
	{"malformed", func(s *scene) string { return quoted(s.malformed()) }},
	{"asked", func(s *scene) string { return quoted(s.asked()) }},
	{"unchanged", func(s *scene) string { return quoted(s.unchanged()) }},
	{"times", (*scene).times},
	{"every_parameter", func(s *scene) string { return quoted(s.own(replaceAll)) }},

	{"place", func(s *scene) string { return quoted(s.place()) }},
	{"parsed", func(s *scene) string { return quoted(s.parsed()) }},
	{"near", func(s *scene) string { return quoted(s.near()) }},
	{"coded", func(s *scene) string { return quoted(s.coded()) }},
	{"unclosed", func(s *scene) string { return quoted(s.unclosed()) }},
	{"inline", func(s *scene) string { return quoted(s.inline()) }},
	{"unbalanced", func(s *scene) string { return quoted(s.unbalanced()) }},

	{"host", func(s *scene) string { return quoted(s.host()) }},
	{"stopped", (*scene).stopped},
	{"answered", func(s *scene) string { return quoted(s.answered()) }},
	{"socket", func(s *scene) string { return quoted(s.socket()) }},
	{"untrusted", func(s *scene) string { return quoted(s.untrusted()) }},
	{"local_service", func(s *scene) string { return s.hostIf(true, false) }},
	{"inner_host", func(s *scene) string { return s.hostIf(false, false) }},
	{"remote_host", func(s *scene) string { return s.hostIf(false, true) }},

	{"lasts", (*scene).lasts},
	{"wait", (*scene).waitSaid},
	{"sleep", (*scene).sleep},

	{"created", func(s *scene) string { return listed(s.created(), 4, "and") }},
}

// slotNames are the slots that a template may have.
func slotNames() (out []string) {
	for _, s := range slots {
		out = append(out, s.name)
	}
	return out
}

// fill is a slot's value, "" if the conversation does not tell. Values are
// computed once.
func (s *scene) fill(name string) string {
	v, ok := s.memo[name]
	if ok {
		return v
	}
	for i := range slots {
		if slots[i].name == name {
			v = slots[i].fill(s)
		}
	}
	s.memo[name] = v
	return v
}
