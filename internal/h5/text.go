package h5

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Storing says how strings of a list are stored.
type Storing int

const (
	// Fixed gives every string the length of the longest, with NULs behind.
	Fixed Storing = iota
	// Variable gives every string its own length.
	Variable
)

// WriteString makes a dataset of one string, which is UTF-8 without NUL.
func (f *File) WriteString(path, s string) error {
	if err := checkText(s); err != nil {
		return f.wrap("write", path, "", err)
	}
	return f.make("write", path, textElement([]string{s}, Fixed), Layout{}, func(o object) error {
		return putText(o, []string{s}, Fixed)
	})
}

// WriteStrings makes a dataset with one axis of strings, which are UTF-8 without
// NUL.
func (f *File) WriteStrings(path string, list []string, how Storing) error {
	if err := checkText(list...); err != nil {
		return f.wrap("write", path, "", err)
	}
	return f.make("write", path, textElement(list, how), Layout{Shape: []int{len(list)}}, func(o object) error {
		return putText(o, list, how)
	})
}

// stringBytes is about the size of the chunks of a list of strings that can grow.
const stringBytes = 4096

// CreateStrings makes a list of strings of any length, UTF-8 without NUL, that
// AppendStrings and Extend make longer.
func (f *File) CreateStrings(path string, list []string) error {
	return f.createStrings(path, list, 0)
}

// CreateFixedStrings is CreateStrings with length bytes for each string, NULs behind it. A
// longer string is an error that wraps ErrText.
func (f *File) CreateFixedStrings(path string, list []string, length int) error {
	if length < 1 {
		return f.wrap("write", path, "", fmt.Errorf("%w: strings of %d bytes", ErrShape, length))
	}
	return f.createStrings(path, list, length)
}

// createStrings is both; with a length of 0 the strings have any length.
func (f *File) createStrings(path string, list []string, length int) error {
	err := checkText(list...)
	if err == nil {
		err = checkLengths(list, length)
	}
	if err != nil {
		return f.wrap("write", path, "", err)
	}
	size := length
	if length == 0 {
		size = referenceSize
	}
	l := Layout{Shape: []int{len(list)}, Chunk: []int{max(1, stringBytes/size)}, Extendible: true}
	return f.make("write", path, element{t: String, length: length}, l, func(o object) error {
		switch {
		case len(list) == 0:
			return nil
		case length == 0:
			return o.writeVariable(list, nil)
		}
		return o.writeFixed(padded(list, length), nil)
	})
}

// checkLengths looks for strings that are longer than those of a list; 0 allows all.
func checkLengths(list []string, length int) error {
	for i, s := range list {
		if length > 0 && len(s) > length {
			return fmt.Errorf("%w: string %d has %d bytes, those of the list have %d", ErrText, i, len(s), length)
		}
	}
	return nil
}

// AppendStrings puts strings behind those of a list of CreateStrings. All strings that are
// added while the file is open share heaps in it; each time it is opened a new one
// begins, of 4 KiB.
func (f *File) AppendStrings(path string, list []string) error {
	return f.appendStrings(path, list, func(info Info) error {
		if !info.Variable {
			return fmt.Errorf("%w: strings of %d bytes, not of any length", ErrType, info.Length)
		}
		return nil
	})
}

// AppendFixedStrings puts strings behind those of a list of CreateFixedStrings. A longer
// string than the list has room for is an error that wraps ErrText.
func (f *File) AppendFixedStrings(path string, list []string) error {
	return f.appendStrings(path, list, func(info Info) error {
		if info.Variable || info.padding != nullPadded {
			return fmt.Errorf("%w: not strings of one length with NULs behind", ErrType)
		}
		return checkLengths(list, info.Length)
	})
}

func (f *File) appendStrings(path string, list []string, check func(Info) error) error {
	if err := checkText(list...); err != nil {
		return f.wrap("append", path, "", err)
	}
	return f.on("append", path, "", true, func(o object) error {
		info, err := textInfo(o)
		if err == nil {
			err = check(info)
		}
		if err != nil {
			return err
		}
		if len(info.Shape) != 1 || info.Max[0] != Unlimited && len(list) > info.Max[0]-info.Shape[0] {
			return fmt.Errorf("%w: shape %v, at most %v, can't take %d more", ErrShape, info.Shape, info.Max, len(list))
		}
		if info.ascii {
			if err := checkASCII(list); err != nil {
				return err
			}
		}
		if len(list) == 0 {
			return nil
		}
		return f.change(func() error {
			n := info.Shape[0]
			if err := o.extend([]int{n + len(list)}); err != nil {
				return err
			}
			s := &slab{[]int{n}, []int{len(list)}}
			if info.Variable {
				return o.writeVariable(list, s)
			}
			return o.writeFixed(padded(list, info.Length), s)
		})
	})
}

// ReadString returns the string of a dataset that is one, by itself or as the only one of
// a list; of any length, padding and character set, as its bytes are. A dataset of strings with no element at all is the
// empty string.
func (f *File) ReadString(path string) (string, error) {
	var s string
	err := f.on("read", path, "", false, func(o object) (err error) {
		s, err = oneText(f, o)
		return err
	})
	return s, err
}

// ReadStrings gives the strings of a dataset with one axis.
func (f *File) ReadStrings(path string) ([]string, error) {
	var list []string
	err := f.on("read", path, "", false, func(o object) (err error) {
		list, err = texts(f, o)
		return err
	})
	return list, err
}

// SetAttributeString gives an object an attribute of one string. It replaces an
// attribute of that name.
func (f *File) SetAttributeString(path, name, s string) error {
	return f.setText(path, name, []string{s}, Fixed, nil)
}

// SetAttributeStrings gives an object an attribute with one axis of strings.
func (f *File) SetAttributeStrings(path, name string, list []string, how Storing) error {
	return f.setText(path, name, list, how, []int{len(list)})
}

func (f *File) setText(path, name string, list []string, how Storing, shape []int) error {
	err := checkAttributeName(name)
	if err == nil {
		err = checkText(list...)
	}
	if err != nil {
		return f.wrap("write", path, name, err)
	}
	return f.on("write", path, name, true, func(o object) error {
		return f.change(func() error {
			a, err := o.makeAttribute(name, textElement(list, how), shape)
			if err != nil {
				return err
			}
			return closing(a, func(a object) error { return putText(a, list, how) })
		})
	})
}

// AttributeString is ReadString for an attribute.
func (f *File) AttributeString(path, name string) (string, error) {
	var s string
	err := f.onAttribute(path, name, func(a object) (err error) {
		s, err = oneText(f, a)
		return err
	})
	return s, err
}

// AttributeStrings is ReadStrings for an attribute.
func (f *File) AttributeStrings(path, name string) ([]string, error) {
	var list []string
	err := f.onAttribute(path, name, func(a object) (err error) {
		list, err = texts(f, a)
		return err
	})
	return list, err
}

func checkText(list ...string) error {
	for i, s := range list {
		if at := strings.IndexByte(s, 0); at >= 0 {
			return fmt.Errorf("%w: string %d has a NUL at byte %d", ErrText, i, at)
		}
		if !utf8.ValidString(s) {
			return fmt.Errorf("%w: string %d is not UTF-8: %.40q", ErrText, i, s)
		}
	}
	return nil
}

func checkASCII(list []string) error {
	for i, s := range list {
		if strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
			return fmt.Errorf("%w: string %d is not ASCII, as those of the list: %.40q", ErrText, i, s)
		}
	}
	return nil
}

// textElement is the type of strings as they are stored. No type is empty, so that
// the empty string is a NUL.
func textElement(list []string, how Storing) element {
	if how == Variable {
		return element{t: String}
	}
	length := 1
	for _, s := range list {
		length = max(length, len(s))
	}
	return element{t: String, length: length}
}

func putText(o object, list []string, how Storing) error {
	if len(list) == 0 {
		return nil
	}
	if how == Variable {
		return o.writeVariable(list, nil)
	}
	return o.writeFixed(padded(list, textElement(list, how).length), nil)
}

// padded is strings as they are stored with one length.
func padded(list []string, length int) []byte {
	b := make([]byte, len(list)*length)
	for i, s := range list {
		copy(b[i*length:], s)
	}
	return b
}

func oneText(f *File, o object) (string, error) {
	info, err := textInfo(o)
	if err != nil || info.Null {
		return "", err
	}
	if info.Elements() != 1 {
		return "", fmt.Errorf("%w: shape %v, not one string", ErrShape, info.Shape)
	}
	list, err := getText(f, o, info)
	if err != nil {
		return "", err
	}
	return list[0], nil
}

func texts(f *File, o object) ([]string, error) {
	info, err := textInfo(o)
	if err != nil || info.Null {
		return nil, err
	}
	if len(info.Shape) != 1 {
		return nil, fmt.Errorf("%w: shape %v, not a list of strings", ErrShape, info.Shape)
	}
	return getText(f, o, info)
}

func textInfo(o object) (Info, error) {
	info, err := o.info()
	if err == nil {
		err = wantText(info)
	}
	return info, err
}

func wantText(info Info) error {
	switch {
	case info.Kind != Dataset:
		return fmt.Errorf("%w: it is a %v, not a %v", ErrKind, info.Kind, Dataset)
	case info.Type == Unknown:
		return fmt.Errorf("%w: %s, not %v", ErrType, info.Class, String)
	case info.Type != String:
		return fmt.Errorf("%w: %v, not %v", ErrType, info.Type, String)
	}
	return nil
}

func getText(f *File, o object, info Info) ([]string, error) {
	if err := f.checkRoom(info, info.Shape); err != nil {
		return nil, err
	}
	n := info.Elements()
	if n == 0 {
		return []string{}, nil
	}
	if info.Variable {
		return f.readVariable(o, info)
	}
	b := make([]byte, n*info.Length)
	if err := o.readStored(b); err != nil {
		return nil, err
	}
	list := make([]string, n)
	for i := range list {
		list[i] = string(info.unpad(b[i*info.Length : (i+1)*info.Length]))
	}
	return list, nil
}

// unpad cuts what fills a string up to its length.
func (i Info) unpad(b []byte) []byte {
	switch i.padding {
	case nullTerminated:
		if end := bytes.IndexByte(b, 0); end >= 0 {
			return b[:end]
		}
		return b
	case spacePadded:
		return bytes.TrimRight(b, " ")
	default:
		return bytes.TrimRight(b, "\x00")
	}
}

// The library's numbers for what fills strings up.
const (
	nullTerminated = 0
	nullPadded     = 1
	spacePadded    = 2
)
