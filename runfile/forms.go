package runfile

import (
	"errors"
	"math"

	"github.com/fieldstone-io/fieldstone/record"
)

// Other writers have other forms for the entries of records that a reader needs: a number
// may be an array of one element, an integer a float or the other way round, a boolean an
// integer, a text a list of one. These functions take all of them where no value changes.
// Their errors are those of the record's own accessors.

// intAt returns the integer at a path.
func intAt(r record.Record, path string) (int64, error) {
	n, err := r.Int(path)
	if !errors.Is(err, record.ErrType) {
		return n, err
	}
	if n, ok := whole(numberAt(r, path)); ok {
		return n, nil
	}
	return 0, err
}

// floatAt returns the number at a path.
func floatAt(r record.Record, path string) (float64, error) {
	x, err := r.Float(path)
	if !errors.Is(err, record.ErrType) {
		return x, err
	}
	if x, ok := numberAt(r, path); ok {
		return x, nil
	}
	return 0, err
}

// boolAt returns the boolean at a path.
func boolAt(r record.Record, path string) (bool, error) {
	b, err := r.Bool(path)
	if !errors.Is(err, record.ErrType) {
		return b, err
	}
	if x, ok := numberAt(r, path); ok && (x == 0 || x == 1) {
		return x == 1, nil
	}
	return false, err
}

// textAt returns the string at a path.
func textAt(r record.Record, path string) (string, error) {
	s, err := r.Text(path)
	if !errors.Is(err, record.ErrType) {
		return s, err
	}
	if list, e := r.Texts(path); e == nil && len(list) == 1 {
		return list[0], nil
	}
	return "", err
}

// textsAt returns the list of strings at a path.
func textsAt(r record.Record, path string) ([]string, error) {
	list, err := r.Texts(path)
	if !errors.Is(err, record.ErrType) {
		return list, err
	}
	if s, e := r.Text(path); e == nil {
		return []string{s}, nil
	}
	return nil, err
}

// floatsAt returns the numbers along one axis at a path.
func floatsAt(r record.Record, path string) ([]float64, error) {
	list, err := r.Floats(path)
	if !errors.Is(err, record.ErrType) {
		return list, err
	}
	if list, ok := numbersAt(r, path); ok {
		return list, nil
	}
	return nil, err
}

// intsAt returns the integers along one axis at a path.
func intsAt(r record.Record, path string) ([]int64, error) {
	list, err := r.Ints(path)
	if !errors.Is(err, record.ErrType) {
		return list, err
	}
	numbers, ok := numbersAt(r, path)
	if !ok {
		return nil, err
	}
	list = make([]int64, len(numbers))
	for i, x := range numbers {
		if list[i], ok = whole(x, true); !ok {
			return nil, err
		}
	}
	return list, nil
}

// orElse returns what an accessor finds at a path, or a default where there is nothing.
func orElse[T any](get func(record.Record, string) (T, error), r record.Record, path string, otherwise T) (T, error) {
	return record.Default(func(path string) (T, error) { return get(r, path) }, path, otherwise)
}

// numbersAt returns the numbers at a path along its only axis.
func numbersAt(r record.Record, path string) ([]float64, bool) {
	a, err := r.Array(path)
	if err != nil || a.Rank() != 1 {
		x, ok := numberAt(r, path)
		return []float64{x}, ok && err != nil
	}
	list, err := a.Float64s()
	return list, err == nil
}

// numberAt returns the only number at a path, whatever its type is.
func numberAt(r record.Record, path string) (float64, bool) {
	v, err := r.Get(path)
	if err != nil {
		return 0, false
	}
	a, ok := v.Any().(record.Array)
	if !ok {
		switch v := v.Any().(type) {
		case float64:
			a, err = record.NewArray([]float64{v})
		case int64:
			a, err = record.NewArray([]int64{v})
		case uint64:
			a, err = record.NewArray([]uint64{v})
		default:
			return 0, false
		}
	}
	if err != nil || a.Len() != 1 {
		return 0, false
	}
	list, err := a.Float64s() // exact, or an error
	if err != nil {
		return 0, false
	}
	return list[0], true
}

// whole returns a number as the integer that it is.
func whole(x float64, ok bool) (int64, bool) {
	if !ok || x != math.Trunc(x) || math.Abs(x) > 1<<53 {
		return 0, false
	}
	return int64(x), true
}
