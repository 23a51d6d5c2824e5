package record_test

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/fieldstone-io/fieldstone/record"
)

func TestArraysOfEveryType(t *testing.T) {
	testArray[int8](t, record.Int8, "int8", 1)
	testArray[int16](t, record.Int16, "int16", 2)
	testArray[int32](t, record.Int32, "int32", 4)
	testArray[int64](t, record.Int64, "int64", 8)
	testArray[uint8](t, record.Uint8, "uint8", 1)
	testArray[uint16](t, record.Uint16, "uint16", 2)
	testArray[uint32](t, record.Uint32, "uint32", 4)
	testArray[uint64](t, record.Uint64, "uint64", 8)
	testArray[float32](t, record.Float32, "float32", 4)
	testArray[float64](t, record.Float64, "float64", 8)
}

func testArray[T record.Element](t *testing.T, kind record.ElementType, name string, size int) {
	t.Run(name, func(t *testing.T) {
		values := []T{0, 1, 2, 3, 4, 5}
		a := mustArray(t, values, 3, 1, 2)
		if a.Type() != kind || a.Type().String() != name || a.Type().Size() != size || record.ElementTypeOf[T]() != kind {
			t.Errorf("the type is %v of %d bytes", a.Type(), a.Type().Size())
		}
		if a.Rank() != 3 || a.Len() != 6 || !slices.Equal(a.Dims(), []int{3, 1, 2}) {
			t.Errorf("rank %d, %d elements, dimensions %v", a.Rank(), a.Len(), a.Dims())
		}
		if got, err := record.Values[T](a); err != nil || !slices.Equal(got, values) {
			t.Errorf("the values are %v, %v", got, err)
		}
		if !reflect.DeepEqual(a.Data(), values) {
			t.Errorf("the data are %T %v", a.Data(), a.Data())
		}
		if got, err := a.Float64s(); err != nil || !slices.Equal(got, []float64{0, 1, 2, 3, 4, 5}) {
			t.Errorf("as float64 they are %v, %v", got, err)
		}
		// The values are found by the type of their slice too.
		if v := mustValue(t, values); !v.Equal(mustValue(t, mustArray(t, values))) {
			t.Errorf("as a value: %v", v)
		}
		put, err := record.PutArray(record.NewBuilder(), "k", values, 6).Build()
		if err != nil || !put.Equal(mustOf(t, "k", values)) {
			t.Errorf("put: %v, %v", put, err)
		}
		if kind != record.Uint8 {
			if _, err := record.Values[uint8](a); !errors.Is(err, record.ErrType) {
				t.Errorf("as uint8: %v", err)
			}
		}
	})
}

func TestZeroArray(t *testing.T) {
	var a record.Array
	if a.Type() != record.Float64 || a.Rank() != 1 || a.Len() != 0 || !slices.Equal(a.Dims(), []int{0}) {
		t.Errorf("it is %v", a)
	}
	if b := mustArray(t, []float64{}); !a.Equal(b) || mustValue(t, a).Hash() != mustValue(t, b).Hash() {
		t.Error("it is not the empty array of float64")
	}
	if v, err := record.Values[float64](a); err != nil || v == nil || len(v) != 0 {
		t.Errorf("its values are %v, %v", v, err)
	}
}

func TestNewArrayRefuses(t *testing.T) {
	if _, err := record.NewArray([]int8{1, 2}, 3); !errors.Is(err, record.ErrValue) {
		t.Errorf("error %v", err)
	}
	if a, err := record.NewArray([]int8{1}, slices.Repeat([]int{1}, record.MaxRank)...); err != nil || a.Rank() != record.MaxRank {
		t.Errorf("the largest rank: %v", err)
	}
	if _, err := record.NewArray([]int8{}, 0, math.MaxInt, math.MaxInt); err != nil {
		t.Errorf("no elements and large dimensions: %v", err)
	}
}

func TestFloat64sIsExact(t *testing.T) {
	for _, v := range []int64{1<<53 + 1, math.MaxInt64, -1<<53 - 1} {
		if got, err := mustArray(t, []int64{0, v}).Float64s(); !errors.Is(err, record.ErrType) {
			t.Errorf("%d became %v, %v", v, got, err)
		}
	}
	for _, v := range []uint64{1<<53 + 1, math.MaxUint64} {
		if got, err := mustArray(t, []uint64{0, v}).Float64s(); !errors.Is(err, record.ErrType) {
			t.Errorf("%d became %v, %v", v, got, err)
		}
	}
	if got, err := mustArray(t, []int64{1 << 53, math.MinInt64, 1 << 62}).Float64s(); err != nil || !slices.Equal(got, []float64{1 << 53, math.MinInt64, 1 << 62}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := mustArray(t, []uint64{1 << 63}).Float64s(); err != nil || got[0] != 1<<63 {
		t.Errorf("%v, %v", got, err)
	}
}
