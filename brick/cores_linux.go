package brick

import "golang.org/x/sys/unix"

func usableCores() cores {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil
	}
	var list cores
	for i := range set {
		list = append(list, uint64(set[i]))
	}
	for len(list) > 0 && list[len(list)-1] == 0 {
		list = list[:len(list)-1]
	}
	return list
}
