package emulated

import (
	"fmt"
	"runtime/debug"
	"time"
)

// queue is the work of one stream and the goroutine that runs it. The device's
// lock protects it.
type queue struct {
	d       *Device
	handle  uintptr
	tasks   []task
	added   uint64 // number of the last task that was added
	done    uint64 // number of the last task that was run
	wanted  uint64 // number of the last task that somebody waits for
	newest  uint64 // the device's number of the last task that was added
	closing bool   // nothing will be added
}

type task struct {
	number uint64
	after  []point
	run    func() error
}

// point is a place in a queue.
type point struct {
	q      *queue
	number uint64
}

func (p point) passed() bool { return p.q == nil || p.q.done >= p.number }

func (d *Device) startQueue() *queue {
	q := &queue{d: d, handle: d.handles}
	d.handles++
	d.queues = append(d.queues, q)
	d.workers.Go(q.work)
	return q
}

// add puts a task into the queue that runs after the given points.
func (q *queue) add(run func() error, after ...point) {
	q.added++
	q.d.enqueued++
	q.newest = q.d.enqueued
	q.tasks = append(q.tasks, task{number: q.added, after: after, run: run})
	q.d.changed.Broadcast()
}

// want lets the queue run up to the given task.
func (q *queue) want(number uint64) {
	if number > q.wanted {
		q.wanted = number
		q.d.changed.Broadcast()
	}
}

// waitFor waits until the given task has run.
func (q *queue) waitFor(number uint64) {
	q.want(number)
	for q.done < number {
		q.d.changed.Wait()
	}
}

// work runs the tasks until the queue is closing and empty.
func (q *queue) work() {
	d := q.d
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		if len(q.tasks) == 0 {
			if q.closing {
				d.forget(q)
				return
			}
			d.changed.Wait()
			continue
		}
		if !q.ready(q.tasks[0]) {
			d.changed.Wait()
			continue
		}
		t := q.tasks[0]
		q.tasks[0] = task{}
		q.tasks = q.tasks[1:]
		if d.lost == nil {
			pause := d.pause()
			d.mu.Unlock()
			time.Sleep(pause)
			err := d.runTask(t)
			d.mu.Lock()
			if err != nil {
				d.setLost(err)
			}
		}
		q.done = t.number
		d.changed.Broadcast()
	}
}

// ready reports whether a task may run. It passes a demand on to the queues
// that the task depends on.
func (q *queue) ready(t task) bool {
	if q.d.opts.mode == Lazy && q.wanted < t.number {
		return false
	}
	ready := true
	for _, p := range t.after {
		if !p.passed() {
			p.q.want(p.number)
			ready = false
		}
	}
	return ready
}

// runTask runs a task without the device's lock. A panic in a kernel is an
// error of the device, as a stray access is on a real one.
func (d *Device) runTask(t task) (err error) {
	d.running.RLock()
	defer d.running.RUnlock()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return t.run()
}

func (d *Device) forget(q *queue) {
	for i, other := range d.queues {
		if other == q {
			d.queues = append(d.queues[:i], d.queues[i+1:]...)
			return
		}
	}
}
