package h5

import (
	"slices"
	"sync/atomic"
)

// created counts the groups and datasets that were made in all files, changes the calls that
// changed an object.
var created, changes atomic.Int64

// Created returns how many groups and datasets this process has made, in all files. To make
// one takes as much processor time as to write some ten thousand numbers.
func Created() int64 { return created.Load() }

// Changes returns how many calls of this process have changed an object, or made one.
func Changes() int64 { return changes.Load() }

// Created returns how many groups and datasets were made since the file was opened.
func (f *File) Created() int64 { return f.created }

func (f *File) noteCreated() {
	f.created++
	created.Add(1)
}

// Overwrite writes all elements of a dataset that exists. It reports false, and changes
// nothing, where there is something with another type or shape.
func Overwrite[T Element](f *File, path string, data []T, shape ...int) (fits bool, err error) {
	if err := checkCount(len(data), shape); err != nil {
		return false, f.wrap("overwrite", path, "", err)
	}
	err = f.on("overwrite", path, "", true, func(o object) error {
		info, err := o.info()
		if err != nil {
			return err
		}
		if info.Kind != Dataset || info.Null || info.Type != typeOf[T]() || !slices.Equal(info.Shape, shape) {
			return nil
		}
		fits = true
		if len(data) == 0 {
			return nil
		}
		return f.change(func() error { return o.write(bufferOf(data), nil) })
	})
	return fits && err == nil, err
}

// OverwriteString replaces the string of a dataset of one. It reports false, and changes
// nothing, where there is something else, or a string that is stored with fewer bytes.
func (f *File) OverwriteString(path, s string) (fits bool, err error) {
	return f.overwriteTexts(path, []string{s}, nil)
}

// OverwriteStrings is OverwriteString for a dataset with one axis of as many strings.
func (f *File) OverwriteStrings(path string, list []string) (fits bool, err error) {
	return f.overwriteTexts(path, list, []int{len(list)})
}

func (f *File) overwriteTexts(path string, list []string, shape []int) (fits bool, err error) {
	if err := checkText(list...); err != nil {
		return false, f.wrap("overwrite", path, "", err)
	}
	err = f.on("overwrite", path, "", true, func(o object) error {
		info, err := o.info()
		if err != nil {
			return err
		}
		if info.Kind != Dataset || info.Null || info.Type != String || info.Variable || info.ascii || info.padding != nullPadded || !slices.Equal(info.Shape, shape) {
			return nil
		}
		if textElement(list, Fixed).length > info.Length {
			return nil
		}
		fits = true
		if len(list) == 0 {
			return nil
		}
		return f.change(func() error { return o.writeFixed(padded(list, info.Length), nil) })
	})
	return fits && err == nil, err
}
