package main

import "github.com/fieldstone-io/fieldstone/bench/plan"

// launches are the jobs of a run, in order.
func launches(quick bool) []plan.Launch {
	const repeats, seconds = 9, 8.0
	kernel := func(row, halo int) plan.Case {
		c := situation(plan.Kernel, processes(1, 1, 1), fields(1), cells(row, 4096/row*16, 256))
		c.Halo = halo
		c.Name = nameOf(c)
		return with(c, 15, seconds, "memcpy", "memcpy-stream", "pack", "pack-rows", "pack-naive")
	}
	chunks := situation(plan.Kernel, processes(1, 1, 1), fields(1))
	chunks.Name = "chunks " + chunks.Name
	one := plan.Launch{MPI: "openmpi", Component: "ompio", Ranks: 1}
	for _, halo := range []int{0, 1, 2, 4} {
		for _, row := range []int{16, 64, 256} {
			one.Cases = append(one.Cases, kernel(row, halo))
		}
	}
	one.Cases = append(one.Cases,
		with(chunks, 15, seconds, "chunks", "chunks-sum", "chunks-sum-file", "chunks-file"),
		with(situation(plan.Save, processes(1, 1, 1)), repeats, seconds, all...),
	)
	four := plan.Launch{MPI: "openmpi", Component: "ompio", Ranks: 4, Cases: []plan.Case{
		with(situation(plan.Bundle, slabs4), 0, 0),
		with(situation(plan.Save, slabs4), repeats, seconds, all...),
		with(situation(plan.Save, splitX4), repeats, seconds, all...),
	}}
	compared := func(which []string) []plan.Case {
		return []plan.Case{
			with(situation(plan.Save), repeats, seconds, which...),
			with(situation(plan.Save, splitX2), repeats, seconds, which...),
			with(situation(plan.Save, splitX2, withFsync), repeats, seconds, which...),
			with(situation(plan.Save, fields(100), cube(32)), 15, seconds, which...),
			with(situation(plan.Save, fields(100), cube(32), splitX2), 15, seconds, which...),
		}
	}
	two := plan.Launch{MPI: "openmpi", Component: "ompio", Ranks: 2, Cases: append(compared(all),
		with(situation(plan.Save, fields(1), cells(512, 512, 256)), repeats, seconds, all...),
		with(situation(plan.Save, fields(1), cells(512, 512, 256), splitX2), repeats, seconds, all...),
		with(situation(plan.Save, withFsync), repeats, seconds, all...),
		with(situation(plan.Memory), 0, 0, "fieldstone"),
		with(situation(plan.Memory, splitX2), 0, 0, "fieldstone"),
		with(situation(plan.Restart), repeats, seconds, loaded...),
		with(situation(plan.Restart, splitX2), repeats, seconds, loaded...),
	)}
	three := plan.Launch{MPI: "openmpi", Component: "ompio", Ranks: 3, Cases: []plan.Case{
		with(situation(plan.Restart, processes(1, 1, 3)), repeats, seconds, loaded...),
		with(situation(plan.Restart, processes(3, 1, 1)), repeats, seconds, loaded...),
	}}
	romio := plan.Launch{MPI: "openmpi", Component: "romio", Ranks: 2, Cases: compared(peers)}
	mpich := plan.Launch{MPI: "mpich", Component: "mpich", Ranks: 2, Cases: compared(peers)}
	return []plan.Launch{one, four, two, three, romio, mpich}
}
