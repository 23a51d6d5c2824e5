package shm

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

// locals are the windows of this process that have a name.
var locals struct {
	sync.Mutex
	next int
	open map[string]*local
}

// local is a window of the process: all ranks have the same memory.
type local struct {
	mem   *Memory
	slots []slot
	mu    sync.Mutex
	users int

	arrived          int
	failing, verdict bool
	dead             bool
	turn             chan struct{} // closed when all have come
}

func createLocal(size, ranks int) (*Window, string, error) {
	mem, err := Alloc(size)
	if err != nil {
		return nil, "", err
	}
	l := &local{mem: mem, users: 1, turn: make(chan struct{}), slots: make([]slot, 2*ranks)}
	locals.Lock()
	defer locals.Unlock()
	if locals.open == nil {
		locals.open = make(map[string]*local)
	}
	locals.next++
	name := strconv.Itoa(locals.next)
	locals.open[name] = l
	w := l.window(size)
	w.unlink = func() error {
		locals.Lock()
		defer locals.Unlock()
		delete(locals.open, name)
		return nil
	}
	return w, name, nil
}

func openLocal(name string, size, ranks int) (*Window, error) {
	locals.Lock()
	defer locals.Unlock()
	l := locals.open[name]
	if l == nil {
		return nil, ErrName
	}
	if len(l.mem.Bytes) != size || len(l.slots) != 2*ranks {
		return nil, fmt.Errorf("it has %d bytes for %d ranks, want %d for %d", len(l.mem.Bytes), len(l.slots)/2, size, ranks)
	}
	l.mu.Lock()
	l.users++
	l.mu.Unlock()
	return l.window(size), nil
}

func (l *local) window(size int) *Window {
	return &Window{Bytes: l.mem.Bytes[:size:size], barrier: l, slots: l.slots, unmap: l.leave}
}

func (l *local) leave() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users--; l.users > 0 {
		return nil
	}
	return l.mem.Free()
}

func (l *local) meet(ranks int, _ bool, limit time.Duration) (bool, error) {
	l.mu.Lock()
	if l.dead {
		l.mu.Unlock()
		return false, ErrMissing
	}
	turn := l.turn
	if l.arrived++; l.arrived == ranks {
		l.arrived, l.verdict = 0, l.failing
		l.turn = make(chan struct{})
		close(turn)
	}
	l.mu.Unlock()
	wait := waiting.NewMeter(limit)
	wait.Wait(turn)
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-turn:
		return l.verdict, nil
	default:
		l.dead = true
		return false, ErrMissing
	}
}

func (l *local) fail() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failing = true
}

func (l *local) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failing = false
}
