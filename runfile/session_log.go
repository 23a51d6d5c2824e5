package runfile

import "time"

// A session logs each of its events by one line, on rank 0 alone. All have the same keys,
// so that they can be drawn over the time of a job.

func (s *Session) logEvent(event string, bytes int64, took time.Duration, more ...any) {
	s.log.Info(event, append([]any{
		"run", s.cfg.Name, "segment", s.start.Segment, "time", s.time, "states", s.start.Saved + s.saved,
		"bytes", bytes, "seconds", took.Seconds(),
	}, more...)...)
}

// logResume says with what the segment goes on, when it has been read.
func (s *Session) logResume() {
	if s.c.Rank() != 0 || !s.start.Resumed {
		return
	}
	bytes := int64(8 * len(s.start.State))
	if s.located != nil {
		bytes += s.cells(&s.located.Place)
	}
	s.logEvent("resumed", bytes, s.last.wall.Sub(s.opened), "file", s.start.File, "from_segment", s.start.FromSegment)
}

// logCheckpoint says what a checkpoint has written since the one before: the saved states
// and attempts of the segment, and its own file.
func (s *Session) logCheckpoint(took time.Duration) {
	if s.c.Rank() != 0 {
		return
	}
	bytes := s.bytesWritten()
	s.logEvent("checkpoint", bytes-s.logged.bytes, took, "accepted", s.summary.Accepted)
	s.logged.bytes = bytes
}

// logStop says why the segment has to end, when there is a checkpoint to go on from.
func (s *Session) logStop(reason string, now time.Time) {
	if s.c.Rank() == 0 {
		s.logEvent("stopped", s.bytesWritten(), now.Sub(s.opened), "reason", reason)
	}
}

// bytesWritten is what the session has written so far.
func (s *Session) bytesWritten() int64 { return s.store.written() + s.logged.cells }

// noteCells counts the cells of fields that were written to a place.
func (s *Session) noteCells(p *place) {
	if s.c.Rank() == 0 {
		s.logged.cells += s.cells(p)
	}
}

// cells is the size of the fields of a place.
func (s *Session) cells(p *place) (bytes int64) {
	for _, f := range p.Fields {
		bytes += 8 * s.cfg.Layout.Unknown(f.Name).Domain.Cells()
	}
	return bytes
}
