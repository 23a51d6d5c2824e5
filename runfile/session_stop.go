package runfile

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/fieldstone-io/fieldstone/internal/signals"
)

// stopFlags are reasons to stop, as bits of the message that the ranks exchange.
type stopFlags int64

const (
	stopWallTime stopFlags = 1 << iota
	stopSteps
	stopFile
	stopSignal // and above it, one bit per signal of the configuration
)

// stopFlags are the reasons to stop that this rank sees. Those of the clock and of the
// file are rank 0's.
func (s *Session) stopFlags() stopFlags {
	s.seen |= s.signalled()
	if s.c.Rank() != 0 {
		return s.seen
	}
	k := s.cfg.Stop
	now := s.now()
	if k.WallTime > 0 && now.Sub(s.opened) >= k.WallTime {
		s.seen |= stopWallTime
	}
	if k.Steps > 0 && s.accepted >= k.Steps {
		s.seen |= stopSteps
	}
	if k.File != "" && s.stopFileIsThere(now) {
		s.seen |= stopFile
	}
	return s.seen
}

// filePatience is how long a look for the stop file is waited for. The other ranks wait
// meanwhile without knowing whether rank 0 is to come.
const filePatience = 10 * time.Second

// fileLook is the outcome of a look for the stop file.
type fileLook struct {
	there bool
	err   error
}

// stopFileIsThere looks for the stop file if it is time for that. What a filesystem that
// hangs answers counts at a later call.
func (s *Session) stopFileIsThere(now time.Time) bool {
	file := s.cfg.Stop.File
	if s.looking != nil { // for longer than it is waited for
		select {
		case look := <-s.looking:
			s.looking = nil
			return s.looked(look)
		default:
			return false
		}
	}
	if now.Sub(s.fileSeen) < fileEvery {
		return false
	}
	s.fileSeen = now
	answer := make(chan fileLook, 1)
	go func() {
		there, err := s.store.exists(file)
		answer <- fileLook{there, err}
	}()
	patience := time.NewTimer(min(filePatience, s.c.WatchLimit()/4))
	defer patience.Stop()
	select {
	case look := <-answer:
		return s.looked(look)
	case <-patience.C:
		s.log.Warn("the look for the stop file takes long: the run goes on", "file", file)
		s.looking = answer
		return false
	}
}

func (s *Session) looked(look fileLook) bool {
	if look.err != nil {
		s.log.Warn("can't look for the stop file", "file", s.cfg.Stop.File, "error", look.err)
	}
	return look.there
}

func (s *Session) signalled() (flags stopFlags) {
	for {
		select {
		case got := <-s.inbox: // a nil channel has nothing
			for i, name := range s.cfg.Stop.Signals {
				if signals.Is(got, name) {
					flags |= stopSignal << i
				}
			}
		default:
			return flags
		}
	}
}

// reason is the text for the segment's record.
func (f stopFlags) reason(c *Config) string {
	var list []string
	if f&stopWallTime != 0 {
		list = append(list, "wall time limit of "+c.Stop.WallTime.String())
	}
	if f&stopSteps != 0 {
		list = append(list, fmt.Sprintf("limit of %d steps", c.Stop.Steps))
	}
	if f&stopFile != 0 {
		list = append(list, "file "+c.Stop.File)
	}
	for i, name := range c.Stop.Signals {
		if f&(stopSignal<<i) != 0 {
			list = append(list, "signal "+name)
		}
	}
	return strings.Join(list, ", ")
}

// listen makes the signals of the configuration wait for the next accepted step.
func (s *Session) listen() {
	if len(s.cfg.Stop.Signals) == 0 {
		return
	}
	// One place for each: a second signal of a kind says nothing new.
	s.inbox = make(chan os.Signal, len(s.cfg.Stop.Signals))
	for _, name := range s.cfg.Stop.Signals {
		if sig, err := signals.Lookup(name); err == nil { // validate has asked
			signal.Notify(s.inbox, sig)
		}
	}
}

func (s *Session) stopListening() {
	if s.inbox != nil {
		signal.Stop(s.inbox)
	}
}

// logProgress logs how far the run is, when that is due.
func (s *Session) logProgress(out Outcome) {
	k := s.cfg.Progress
	if s.c.Rank() != 0 || k == (ProgressConfig{}) {
		return
	}
	now := s.now()
	p := &s.progress
	steps := s.accepted - p.accepted
	due := k.Steps > 0 && steps >= k.Steps || k.WallTime > 0 && now.Sub(p.wall) >= k.WallTime
	if !due && !out.Done && !out.Stop {
		return
	}
	s.log.Info("progress", "run", s.cfg.Name, "segment", s.start.Segment,
		"time", s.time, "end", s.cfg.end(), "step_length", s.length,
		"accepted", s.summary.Accepted, "rejected_since", s.attempts-p.attempts-steps,
		"saved", s.start.Saved+s.saved, "wall", now.Sub(s.opened).Round(time.Millisecond))
	p.accepted, p.attempts, p.wall = s.accepted, s.attempts, now
}
