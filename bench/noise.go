package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/fieldstone-io/fieldstone/bench/stats"
)

// From these on the machine counts as too noisy to tell.
const (
	spreadLimit = 0.15 // quartile distance of the yardstick's times over their median
	othersLimit = 0.05 // share of the processors that went to other processes or machines
)

// machine is what a run found.
type machine struct {
	Cores     int       `json:"cores"`
	Processor string    `json:"processor"`
	Kernel    string    `json:"kernel"`
	Load      float64   `json:"load"` // average of the minute before the start
	Others    float64   `json:"others"`
	Started   time.Time `json:"started"`
}

func thisMachine() machine {
	m := machine{Cores: runtime.NumCPU(), Started: time.Now().UTC().Truncate(time.Second)}
	if data, err := os.ReadFile("/proc/loadavg"); err == nil {
		first, _, _ := strings.Cut(string(data), " ")
		m.Load, _ = strconv.ParseFloat(first, 64)
	}
	if data, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(data))
	}
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, after, ok := strings.Cut(string(data), "model name\t: "); ok {
			m.Processor, _, _ = strings.Cut(after, "\n")
		}
	}
	a := readUsage()
	time.Sleep(200 * time.Millisecond)
	m.Others = a.others(readUsage(), 0)
	return m
}

// usage is the time that all processors have spent so far.
type usage struct {
	at   time.Time
	busy time.Duration // with all processes of this machine
	away time.Duration // with other virtual machines
}

func readUsage() usage {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return usage{at: time.Now()}
	}
	u := parseUsage(data)
	u.at = time.Now()
	return u
}

// parseUsage reads the first line of /proc/stat: user, nice, system, idle, iowait, irq,
// softirq, steal.
func parseUsage(data []byte) (u usage) {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	for i, f := range bytes.Fields(line) {
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			continue // "cpu"
		}
		const tick = time.Second / 100 // USER_HZ
		switch i {
		case 1, 2, 3, 6, 7:
			u.busy += time.Duration(n) * tick
		case 8:
			u.away += time.Duration(n) * tick
		}
	}
	return u
}

// others is the share of all processors, from u to v, that was not spent on us.
func (u usage) others(v usage, ours time.Duration) float64 {
	elapsed := v.at.Sub(u.at) * time.Duration(runtime.NumCPU())
	if elapsed <= 0 || v.busy == u.busy {
		return 0
	}
	return max(0, float64(v.busy-u.busy-ours+v.away-u.away)/float64(elapsed))
}

// jobRecord is what is known of a launch.
type jobRecord struct {
	Job     string   `json:"job"`
	Seconds float64  `json:"seconds"`
	Others  float64  `json:"others"` // see othersLimit
	Cases   []string `json:"cases"`
	Error   string   `json:"error,omitempty"`
}

// noisy reports whether the yardstick of a case varied too much, or something else ran.
func (r *results) noisy(component, name string) bool {
	if r.busy[key{Component: component, Case: name}] {
		return true
	}
	for _, c := range r.cases {
		if c.Name == name && len(c.Contestants) > 0 {
			s := r.seconds(component, name, c.Contestants[0])
			return len(s) > 1 && stats.Spread(s) > spreadLimit
		}
	}
	return false
}

// verdict says in words whether the figures can be trusted.
func verdict(m machine, jobs []jobRecord, entries []entry) string {
	var why []string
	if m.Others > othersLimit { // the load average alone may be of a past that is over
		why = append(why, fmt.Sprintf("at the start %.0f %% of %d cores were busy, and the load average was %.1f", 100*m.Others, m.Cores, m.Load))
	}
	busy := 0
	worst := 0.0
	for _, j := range jobs {
		if j.Others > othersLimit {
			busy++
			worst = max(worst, j.Others)
		}
	}
	if busy > 0 {
		why = append(why, fmt.Sprintf("during %d of %d jobs more than %.0f %% of the processors went to others, at most %.0f %%", busy, len(jobs), 100*othersLimit, 100*worst))
	}
	noisy := 0
	for _, e := range entries {
		if e.Noisy {
			noisy++
		}
	}
	if noisy > 0 {
		why = append(why, fmt.Sprintf("%d of %d measures are marked as noisy", noisy, len(entries)))
	}
	if len(why) == 0 {
		return "The machine was quiet."
	}
	return "The machine was not quiet: " + strings.Join(why, "; ") + "."
}
