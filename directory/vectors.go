package directory

import (
	_ "embed"
	"math"
	"slices"
	"strings"
	"sync"
)

// wordVectors holds 12,624 English stems and a vector for each, 4 bits a
// value: the stems, sorted, a line each; then 52 bytes a stem, of which the
// last 50 hold two values each, low nibble first, 8 meaning zero. Each row has
// its own scale, which angles do not need. Where it comes from: NOTICE.
//
//go:embed word-vectors-20k-4bit.bin
var wordVectors string

const (
	vectorStems = 12624
	vectorRow   = 52
	vectorSize  = 100
)

// vector is a direction in the space of meanings, of length one.
type vector [vectorSize]float32

func (v *vector) dot(w *vector) float32 {
	var a, b, c, d float32
	for i := 0; i < vectorSize; i += 4 {
		a += v[i] * w[i]
		b += v[i+1] * w[i+1]
		c += v[i+2] * w[i+2]
		d += v[i+3] * w[i+3]
	}
	return a + b + c + d
}

func (v *vector) add(w *vector, weight float32) {
	for i := range v {
		v[i] += weight * w[i]
	}
}

// addWord adds the direction of a word.
func (v *vector) addWord(w *wordVector, weight float32) {
	weight *= w.scale
	for i, x := range w.values {
		v[i] += weight * float32(x)
	}
}

// normalize scales v to length one; a vector of nothing stays that.
func (v *vector) normalize() {
	if n := v.dot(v); n > 0 {
		scale := float32(1 / math.Sqrt(float64(n)))
		for i := range v {
			v[i] *= scale
		}
	}
}

type vectorTable struct {
	terms []string
	rows  []wordVector
}

// wordVector is the direction of a word: values from -8 to 7, which scale
// brings to length one.
type wordVector struct {
	values smallVector
	scale  float32
}

func (w *wordVector) cosine(x *wordVector) float32 {
	var sum int32
	for i, v := range w.values {
		sum += int32(v) * int32(x.values[i])
	}
	return float32(sum) * w.scale * x.scale
}

var vectors = sync.OnceValue(func() *vectorTable {
	at := len(wordVectors) - vectorRow*vectorStems
	t := &vectorTable{terms: strings.Split(wordVectors[:at], "\n"), rows: make([]wordVector, vectorStems)}
	for i := range t.rows {
		row := wordVectors[at+i*vectorRow+2 : at+(i+1)*vectorRow]
		w, length := &t.rows[i], 0
		for j := range len(row) {
			low, high := int8(row[j]&15)-8, int8(row[j]>>4)-8
			w.values[2*j], w.values[2*j+1] = low, high
			length += int(low)*int(low) + int(high)*int(high)
		}
		w.scale = float32(1 / math.Sqrt(float64(max(length, 1))))
	}
	return t
})

// row returns where the vector of a term is, -1 if there is none.
func (t *vectorTable) row(term string) int32 {
	if i, ok := slices.BinarySearch(t.terms, term); ok {
		return int32(i)
	}
	return -1
}

// smallVector is a vector in a byte a value. A tool's is about 127 long.
type smallVector [vectorSize]int8

func (v *vector) small() (s smallVector) {
	for i, x := range v {
		s[i] = int8(math.Round(float64(x) * 127))
	}
	return s
}

func (v *vector) dotSmall(s *smallVector) float32 {
	var a, b float32
	for i := 0; i < vectorSize; i += 2 {
		a += v[i] * float32(s[i])
		b += v[i+1] * float32(s[i+1])
	}
	return (a + b) / 127
}

// vectorSum adds up small vectors exactly, so that the sum does not depend on
// the order or history of its parts.
type vectorSum [vectorSize]int64

func (s *vectorSum) add(v *smallVector, sign int64) {
	for i, x := range v {
		s[i] += sign * int64(x)
	}
}

// direction returns the sum as a vector of length one.
func (s *vectorSum) direction() (v vector) {
	for i, x := range s {
		v[i] = float32(x)
	}
	v.normalize()
	return v
}
