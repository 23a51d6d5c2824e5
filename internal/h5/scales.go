package h5

import (
	"fmt"
	"strings"
)

// MakeScale makes a dataset with one axis a dimension scale of HDF5, which has the
// coordinates of an axis of others. Its name as a scale is the last part of its path.
func (f *File) MakeScale(path string) error {
	return f.on("make a scale of", path, "", true, func(o object) error {
		info, err := o.info()
		if err == nil {
			err = wantKind(o, Dataset)
		}
		if err == nil && len(info.Shape) != 1 {
			err = fmt.Errorf("%w: %v, a scale has one axis", ErrShape, info.Shape)
		}
		if err != nil {
			return err
		}
		return f.change(func() error { return o.makeScale(path[strings.LastIndexByte(path, '/')+1:]) })
	})
}

// Scaled names the scales of a dataset: one for each axis, as long as the axis. Both can be
// extended afterwards.
type Scaled struct {
	Dataset string
	Scales  []string
}

// AttachScales attaches scales to the axes of datasets. One call attaches all that a file
// has: it writes each scale's list of axes once, in place of the one that was there.
//
// The attributes refer to the datasets themselves, not to their names: one that is removed
// and made anew is no longer attached.
func (f *File) AttachScales(list []Scaled) error {
	var scales []string // in the order in which they come
	users := map[string]*scaleUsers{}
	lengths := map[string]int{}
	references := map[string]uint64{}
	for _, d := range list {
		for _, s := range d.Scales {
			if users[s] != nil {
				continue
			}
			info, reference, err := f.refer(s)
			if err == nil && len(info.Shape) != 1 {
				err = f.wrap("attach", s, "", fmt.Errorf("%w: %v, a scale has one axis", ErrShape, info.Shape))
			}
			if err != nil {
				return err
			}
			scales = append(scales, s)
			users[s] = &scaleUsers{}
			lengths[s], references[s] = info.Shape[0], reference
		}
	}
	own := make([][]uint64, len(list)) // nothing is written before all is known to fit
	for n, d := range list {
		info, reference, err := f.refer(d.Dataset)
		if err != nil {
			return err
		}
		if len(d.Scales) == 0 || len(d.Scales) != len(info.Shape) {
			return f.wrap("attach scales to", d.Dataset, "", fmt.Errorf("%w: %d scales for shape %v", ErrShape, len(d.Scales), info.Shape))
		}
		for i, s := range d.Scales {
			if lengths[s] != info.Shape[i] {
				return f.wrap("attach scales to", d.Dataset, "", fmt.Errorf("%w: scale %s is %d long, for axis %d of shape %v", ErrShape, s, lengths[s], i, info.Shape))
			}
			own[n] = append(own[n], references[s])
			users[s].add(reference, i)
		}
	}
	for n, d := range list {
		err := f.on("attach scales to", d.Dataset, "", true, func(o object) error {
			return f.change(func() error { return o.setScales(own[n]) })
		})
		if err != nil {
			return err
		}
	}
	for _, s := range scales {
		err := f.on("attach", s, "", true, func(o object) error {
			return f.change(func() error { return o.setUsers(users[s].datasets, users[s].axes) })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// scaleUsers are the axes to which a scale is attached.
type scaleUsers struct {
	datasets []uint64
	axes     []int
}

func (u *scaleUsers) add(dataset uint64, axis int) {
	u.datasets, u.axes = append(u.datasets, dataset), append(u.axes, axis)
}

// refer describes a dataset and returns what attributes name it by.
func (f *File) refer(path string) (info Info, reference uint64, err error) {
	err = f.on("refer to", path, "", true, func(o object) (err error) {
		if err := wantKind(o, Dataset); err != nil {
			return err
		}
		if info, err = o.info(); err == nil {
			reference, err = o.reference()
		}
		return err
	})
	return info, reference, err
}
