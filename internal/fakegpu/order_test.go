//go:build linux && (amd64 || arm64)

package fakegpu_test

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/internal/fakegpu"
)

func nans(n int) []float64 {
	numbers := make([]float64, n)
	for i := range numbers {
		numbers[i] = math.NaN()
	}
	return numbers
}

func TestNewMemoryIsNaN(t *testing.T) {
	each(t, func(t *testing.T, g *gpu) {
		g.wantNumbers(g.read(g.alloc(80), 10), nans(10))
		g.wantNumbers(g.pinned(10), nans(10))
	})
}

func TestWorkOfAStreamRunsInOrder(t *testing.T) {
	each(t, func(t *testing.T, g *gpu) {
		f, s := g.pack3d(), g.stream()
		src, out := g.pinned(125), g.pinned(27)
		copy(src, count(125))
		array, packed := g.alloc(8*125), g.alloc(8*27)
		g.must(g.toDeviceOn(array, pointer(src), 8*125, s))
		g.must(g.pack(f, packed, array, box{1, 1, 1, 3, 3, 3, 5, 25}, s))
		g.must(g.toHostOn(pointer(out), packed, 8*27, s))
		g.must(g.syncStream(s))
		var want []float64
		for z := range 3 {
			for y := range 3 {
				for x := range 3 {
					want = append(want, float64(x+1+5*(y+1)+25*(z+1)))
				}
			}
		}
		g.wantNumbers(out, want)
		if n := g.fake.Launches("pack3d"); n != 1 {
			t.Errorf("%d launches of pack3d were counted", n)
		}
	})
}

func TestAMissingSynchroniseShows(t *testing.T) {
	lazily(t, func(t *testing.T, g *gpu) {
		for range 20 {
			p, out, s := g.filled(count(10)), g.pinned(10), g.stream()
			g.must(g.toHostOn(pointer(out), p, 80, s))
			g.wantNumbers(out, nans(10))
			g.must(g.syncStream(s))
			g.wantNumbers(out, count(10))
		}
	})
}

// producerAndConsumer lets one stream write what another one reads.
func producerAndConsumer(g *gpu, wait bool) []float64 {
	first, second, e := g.stream(), g.stream(), g.event()
	src, between, out := g.filled(count(10)), g.alloc(80), g.pinned(10)
	g.must(g.onDeviceOn(between, src, 80, first))
	g.must(g.record(e, first))
	if wait {
		g.must(g.wait(second, e, 0))
	}
	g.must(g.toHostOn(pointer(out), between, 80, second))
	g.must(g.syncStream(second))
	got := append([]float64(nil), out...)
	g.must(g.syncStream(first))
	return got
}

func TestAMissingEventWaitShows(t *testing.T) {
	lazily(t, func(t *testing.T, g *gpu) {
		for range 20 {
			g.wantNumbers(producerAndConsumer(g, false), nans(10))
		}
	})
}

func TestEventsOrderStreams(t *testing.T) {
	each(t, func(t *testing.T, g *gpu) {
		for range 20 {
			g.wantNumbers(producerAndConsumer(g, true), count(10))
		}
	})
}

// What an event stood for when it was waited for counts, not what it stands for later.
func TestAnEventThatIsRecordedAgain(t *testing.T) {
	lazily(t, func(t *testing.T, g *gpu) {
		first, second, e := g.stream(), g.stream(), g.event()
		a, b, out := g.filled(count(10)), g.alloc(80), g.pinned(10)
		g.must(g.onDeviceOn(b, a, 80, first))
		g.must(g.record(e, first))
		g.must(g.wait(second, e, 0))
		other := g.stream()
		g.must(g.record(e, other))
		g.must(g.closeEvent(e))
		g.must(g.toHostOn(pointer(out), b, 80, second))
		g.must(g.syncStream(second))
		g.wantNumbers(out, count(10))
		g.want(g.queryEvent(e), invalidHandle, "query a closed event")
	})
}

func TestQueriesMakeProgress(t *testing.T) {
	each(t, func(t *testing.T, g *gpu) {
		s, e := g.stream(), g.event()
		g.must(g.queryEvent(e)) // stands for nothing
		p, out := g.filled(count(10)), g.pinned(10)
		g.must(g.toHostOn(pointer(out), p, 80, s))
		g.must(g.record(e, s))
		for g.queryEvent(e) == notReady {
			runtime.Gosched()
		}
		g.must(g.queryEvent(e))
		g.wantNumbers(out, count(10))

		more := g.pinned(10)
		g.must(g.toHostOn(pointer(more), p, 80, s))
		for g.queryStream(s) == notReady {
			runtime.Gosched()
		}
		g.must(g.queryStream(s))
		g.wantNumbers(more, count(10))
	})
}

func TestLazyWorkIsNotReady(t *testing.T) {
	lazily(t, func(t *testing.T, g *gpu) {
		s, p, out := g.stream(), g.filled(count(10)), g.pinned(10)
		g.must(g.queryStream(s))
		g.must(g.toHostOn(pointer(out), p, 80, s))
		g.want(g.queryStream(s), notReady, "query a stream with work")
		g.must(g.syncStream(s))
	})
}

func TestTimeBetweenEvents(t *testing.T) {
	each(t, func(t *testing.T, g *gpu) {
		s, from, to := g.stream(), g.event(), g.event()
		var ms float32
		g.want(g.elapsed(&ms, from, to), invalidHandle, "time between events that weren't recorded")
		g.must(g.record(from, s))
		g.must(g.record(to, s))
		g.must(g.syncEvent(to))
		g.must(g.elapsed(&ms, from, to))
		if ms < 0 {
			t.Errorf("%v ms", ms)
		}
	})
}

func TestWorkOfAClosedStreamRuns(t *testing.T) {
	each(t, func(t *testing.T, g *gpu) {
		s, p, out := g.stream(), g.filled(count(10)), g.pinned(10)
		g.must(g.toHostOn(pointer(out), p, 80, s))
		g.must(g.closeStream(s))
		g.must(g.sync())
		g.wantNumbers(out, count(10))
		if g.syncStream(s) == ok {
			t.Error("a closed stream can be waited for")
		}
	})
}

// HIP's events are of no use once their stream is destroyed; CUDA's are.
func TestEventOfADestroyedStream(t *testing.T) {
	for name, use := range map[string]func(g *gpu, e uintptr) int32{
		"synchronise": func(g *gpu, e uintptr) int32 { return g.syncEvent(e) },
		"query":       func(g *gpu, e uintptr) int32 { return g.queryEvent(e) },
		"wait":        func(g *gpu, e uintptr) int32 { return g.wait(g.stream(), e, 0) },
		"elapsed": func(g *gpu, e uintptr) int32 {
			var ms float32
			return g.elapsed(&ms, e, e)
		},
	} {
		t.Run(name, func(t *testing.T) {
			lazily(t, func(t *testing.T, g *gpu) {
				s, other, e := g.stream(), g.stream(), g.event()
				g.must(g.record(e, s))
				g.must(g.syncStream(s))
				g.must(use(g, e))
				g.wantMisuse(0)
				g.must(g.closeStream(s))
				g.must(use(g, e))
				if g.vendor == "cuda" {
					g.wantMisuse(0)
				} else if n, _ := g.fake.Misuse(); n == 0 {
					t.Error("no misuse was counted")
				}
				g.must(g.record(e, other)) // a new life
				g.must(g.syncEvent(e))
				g.must(use(g, e))
				g.must(g.closeStream(other))
				g.must(g.closeEvent(e)) // nothing is followed
				g.wantMisuse(0)
			})
		})
	}
}

func TestTheHostCantReadTheDevice(t *testing.T) {
	lazily(t, func(t *testing.T, g *gpu) {
		p := g.filled(count(10))
		if !faults(func() byte { return **(**byte)(unsafe.Pointer(&p)) }) {
			t.Error("the host can read memory of the device")
		}
	})
}

func faults(read func() byte) (faulted bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { faulted = recover() != nil }()
	return read() == 0 && false
}

func TestPageableMemoryIsStaged(t *testing.T) {
	each(t, func(t *testing.T, g *gpu) {
		s, p := g.stream(), g.alloc(80)
		src, out := count(10), make([]float64, 10)
		g.must(g.toDeviceOn(p, pointer(src), 80, s))
		clear(src) // at once
		g.must(g.toHostOn(pointer(out), p, 80, s))
		g.wantNumbers(out, count(10)) // without waiting
		if n := g.fake.PageableCopies(); n != 2 {
			t.Errorf("%d pageable copies were counted", n)
		}
	})
}

func TestStrictWantsPinnedMemory(t *testing.T) {
	lazily(t, func(t *testing.T, g *gpu) {
		g.fake.Strict(t)
		s, p, src := g.stream(), g.alloc(80), count(10)
		g.want(g.toDeviceOn(p, pointer(src), 80, s), invalidValue, "copy of pageable memory")
		g.wantMisuse(1)
		g.must(g.register(pointer(src), 80, 0))
		g.must(g.toDeviceOn(p, pointer(src), 80, s))
		g.must(g.syncStream(s))
		g.must(g.unregister(pointer(src)))
	})
}

func TestPinnedMemoryBelongsToQueuedCopies(t *testing.T) {
	for _, test := range []struct {
		name     string
		misuse   func(g *gpu, s, p uintptr, pinned []float64)
		misuses  int64
		strictly int32 // what the stream says in strict mode
	}{
		{"the source is changed", func(g *gpu, s, p uintptr, pinned []float64) {
			g.must(g.toDeviceOn(p, pointer(pinned), 80, s))
			pinned[3] = 7
		}, 1, launchFailed},
		{"the destination is written", func(g *gpu, s, p uintptr, pinned []float64) {
			g.must(g.toHostOn(pointer(pinned), p, 80, s))
			pinned[3] = 7
		}, 1, launchFailed},
		{"it is freed", func(g *gpu, s, p uintptr, pinned []float64) {
			g.must(g.toHostOn(pointer(pinned), p, 80, s))
			g.must(g.unpin(pointer(pinned)))
		}, 1, ok},
		{"device memory is freed", func(g *gpu, s, p uintptr, pinned []float64) {
			g.must(g.toHostOn(pointer(pinned), p, 80, s))
			g.must(g.free(p))
		}, 1, ok},
		{"nothing is done to it", func(g *gpu, s, p uintptr, pinned []float64) {
			g.must(g.toDeviceOn(p, pointer(pinned), 80, s))
			g.must(g.toHostOn(pointer(pinned), p, 80, s))
			g.must(g.toDeviceOn(p, pointer(pinned), 80, s))
			g.must(g.toHostOn(pointer(pinned), p, 80, s))
		}, 0, ok},
		{"it is changed after the copy", func(g *gpu, s, p uintptr, pinned []float64) {
			g.must(g.toDeviceOn(p, pointer(pinned), 80, s))
			g.must(g.syncStream(s))
			pinned[3] = 7
		}, 0, ok},
	} {
		t.Run(test.name, func(t *testing.T) {
			lazily(t, func(t *testing.T, g *gpu) {
				for _, strict := range []bool{false, true} {
					if strict {
						g.fake.Strict(t)
					}
					s, p, pinned := g.stream(), g.alloc(80), g.pinned(10)
					copy(pinned, count(10))
					test.misuse(g, s, p, pinned)
					want := int32(ok)
					if strict {
						want = test.strictly
					}
					g.want(g.syncStream(s), want, "synchronise")
					g.wantMisuse(test.misuses)
				}
			})
		})
	}
}

func TestPinnedMemoryHasAnEnd(t *testing.T) {
	lazily(t, func(t *testing.T, g *gpu) {
		pinned := g.pinned(10)
		*(*byte)(unsafe.Add(pointer(pinned), 80)) = 1
		g.must(g.unpin(pointer(pinned)))
		g.wantMisuse(1)
	})
}

func TestManyStreams(t *testing.T) {
	each(t, func(t *testing.T, g *gpu) {
		const streams = 30
		p := g.filled(count(streams))
		out := g.pinned(streams)
		var all []uintptr
		for i := range streams {
			s := g.stream()
			all = append(all, s)
			g.must(g.toHostOn(unsafe.Pointer(&out[i]), p+uintptr(8*i), 8, s))
		}
		g.must(g.sync())
		g.wantNumbers(out, count(streams))
		for _, s := range all {
			g.must(g.closeStream(s))
		}
		if live := g.fake.Live(); live.Streams != 0 {
			t.Errorf("%d streams are left", live.Streams)
		}
	})
}

func TestModesHaveNames(t *testing.T) {
	for i, want := range []string{"lazy", "delayed", "eager"} {
		if got := fakegpu.Modes[i].String(); got != want {
			t.Errorf("mode %d is %s, want %s", i, got, want)
		}
	}
}
