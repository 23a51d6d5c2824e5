package main

import "time"

// why is the reason for which something in a directory of bundles is no bundle that a
// restart takes: that it was set aside, or left over. It is empty for bundles. The name
// has the kind only, so the reason is looked for in what is there now.
func (e *entry) why(entries []*entry, verify bool) string {
	switch {
	case e.kind == kindDamaged && e.cause != nil:
		return reason(e.path, e.cause)
	case e.kind == kindDamaged:
		text := "set aside as damaged, but good by " + e.checked(verify)
		if e.info.Checksums && !verify {
			text += " (--verify reads it)"
		}
		return text
	case e.kind == kindSuperseded:
		if from := restartPoint(e, entries); from != "" {
			return "set aside by a restart from " + from
		}
		return "set aside by a restart from an earlier state"
	case e.state == stateLeftover:
		return "its job is gone"
	}
	return ""
}

// restartPoint is the name of the bundle from which a run restarted when it set another
// one aside, empty if that isn't known. The restart set aside all bundles above its own, so
// of the bundles that are no younger than the one set aside it is the highest below it.
// Retention removes the lowest first: if the restart point is gone, so are the ones below.
func restartPoint(aside *entry, entries []*entry) string {
	created, ok := aside.created()
	if !ok {
		return ""
	}
	for _, e := range entries { // highest first
		if e.kind != kindBundle || e.step < 0 || e.step >= aside.step {
			continue
		}
		if at, ok := e.created(); ok && !at.After(created) {
			return e.name
		}
	}
	return ""
}

// created is when a bundle was written, if its metadata say so.
func (e *entry) created() (time.Time, bool) {
	if w := e.info.Metadata.Writer; e.known() && w != nil && !w.Created.IsZero() {
		return w.Created, true
	}
	return time.Time{}, false
}
