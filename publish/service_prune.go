package publish

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Other ranks wait while rank 0 removes old bundles, so what one save does is bounded: a
// directory of thousands takes several saves. Each removes more bundles than it adds, if
// there are so many.
const (
	pruneFor     = time.Second // after that nothing is begun but what follows
	pruneLeast   = 2           // bundles that are removed, or tried, however long it takes
	pruneFreshly = 8           // newest good bundles that are looked at again in each save
	pruneLooks   = 16          // looks at bundles that stay, and at ones that might go, however long it takes
)

// verdict is what prune made of a bundle, by its structure.
type verdict struct{ good, finite bool }

// pruning is one call of prune.
type pruning struct {
	d       checkpoints
	now     func() time.Time
	end     time.Time
	looks   int
	removed int // or tried
	failed  []error
}

// prune removes the oldest good bundles beyond keep, counting from newest, which
// is durable, as far as one save does. Good is judged by structure and size: reading all of the kept bundles
// after each save would cost more than they did. Bundles above newest, and those
// that aren't good, are not its business. The newest one that is finite stays, in
// addition to keep if need be. It goes on after a failure, and after a bundle that it can't
// judge, which stays and isn't counted.
func (d checkpoints) prune(newest int64, keep int, now func() time.Time) error {
	if keep <= 0 {
		return nil
	}
	steps, err := d.steps()
	if err != nil {
		return err
	}
	steps = slices.DeleteFunc(steps, func(n int64) bool { return n > newest })
	p := &pruning{d: d, now: now, end: now().Add(pruneFor)}
	p.remove(p.beyond(steps, keep))
	return p.outcome()
}

// beyond returns what may be removed, if it is good, newest first: what is older than
// the bundles that stay. When the time is over it is less, maybe nothing: then later saves
// go on, for verdicts are kept.
func (p *pruning) beyond(steps []int64, keep int) (old []int64) {
	good, finite := 0, false
	for i, n := range steps {
		if good >= keep && finite {
			return append(old, steps[i:]...)
		}
		if p.d.stuck[n] {
			continue
		}
		v, known := p.d.judged[n]
		if !known || good < pruneFreshly && p.looks < pruneLooks {
			if p.looks >= pruneLooks && p.late() {
				return old
			}
			v = p.judge(n)
		}
		if !v.good {
			continue
		}
		newestFinite := v.finite && !finite
		finite = finite || v.finite
		if good++; good > keep && !newestFinite {
			old = append(old, n)
		}
	}
	return old
}

// late reports whether the time is over.
func (p *pruning) late() bool { return p.now().After(p.end) }

// judge looks at a bundle.
func (p *pruning) judge(n int64) verdict {
	p.looks++
	b, err := readStructure(p.d.o.fs, p.d.path(n))
	if err != nil {
		if !damaged(err) {
			p.stuck(n, fmt.Errorf("%s can't be judged: %w", p.d.path(n), err))
		}
		p.d.judged[n] = verdict{}
		return verdict{}
	}
	v := verdict{true, p.d.o.notFinite(b.info.Metadata) == ""}
	p.d.judged[n] = v
	return v
}

func (p *pruning) stuck(n int64, err error) {
	p.d.stuck[n] = true
	p.failed = append(p.failed, err)
}

// remove removes the good ones of a list, the oldest first.
func (p *pruning) remove(old []int64) {
	for i, n := range slices.Backward(old) {
		if p.d.stuck[n] {
			continue
		}
		if v, known := p.d.judged[n]; known && !v.good {
			continue
		}
		if p.late() && (p.removed >= pruneLeast || p.looks >= 2*pruneLooks) {
			p.d.o.log.Info("old bundles are left for the next saves to remove", "directory", p.d.dir, "bundles", i+1)
			return
		}
		if !p.judge(n).good {
			continue
		}
		p.removed++
		if err := p.d.remove(n); err != nil {
			p.stuck(n, err)
			continue
		}
		delete(p.d.judged, n)
	}
}

// outcome is the error of what failed, of not too many bundles.
func (p *pruning) outcome() error {
	few := p.failed[:min(len(p.failed), mostNamed)]
	err := errors.Join(few...)
	if more := len(p.failed) - len(few); more > 0 {
		err = fmt.Errorf("%w\nand %d more", err, more)
	}
	return err
}
