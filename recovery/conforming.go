package recovery

// The mends of a history, a tool or a content that a target may need: names of
// an Edit's Mend, as they are remembered. Package conform carries them out.
const (
	MendPairing    = "pairing"        // every call answered once, right behind it; no result without a call
	MendCallIDs    = "call_ids"       // ids of calls in the form that the strictest servers take
	MendSignatures = "signatures"     // calls without the signature that Gemini wants back
	MendStubTools  = "stub_tools"     // definitions for the tools that the history has called
	MendAlternate  = "alternate"      // user and assistant take turns
	MendSystem     = "system_first"   // no system message but at the beginning
	MendEmpty      = "empty_content"  // no message without content
	MendTextOnly   = "text_content"   // text as one string instead of parts
	MendField      = "message_field"  // without the message field Field
	MendKeyword    = "schema_keyword" // tool schemas without the keyword Field
	MendItems      = "schema_items"   // every array of a tool schema says what its items are
	MendStrict     = "schema_strict"  // tools are not strict
	MendPlain      = "schema_plain"   // tool schemas with the keywords that every provider takes, and no others
	MendMedia      = "media"          // text in place of images and other attachments
)

// lasting leaves out the edits that answer to what one request contains rather
// than to what its target takes: they would change requests that are well.
func lasting(edits []Edit) (out []Edit) {
	for _, ed := range edits {
		if ed.Mend != MendMedia && !(ed.Mend == MendSignatures && ed.Field != "") {
			out = append(out, ed)
		}
	}
	return out
}

// MessageLabel lists the fields of messages that carry no part of what was
// said: labels, and the reasoning of earlier turns, which most servers ignore.
// Only these are taken out where a target refuses them.
func MessageLabel(field string) bool {
	switch field {
	case "name", "reasoning_content", "reasoning", "reasoning_details", "reasoning_opaque", "thinking_blocks", "refusal", "annotations", "audio",
		"cache_control", "extra_content", "provider_specific_fields", "id", "metadata", "timestamp", "prefix":
		return true
	}
	return false
}
