// SPDX-License-Identifier: Apache-2.0

package freeze_test

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/freeze"
)

type leaf struct {
	name string
	next *leaf
}

type tree struct {
	At      time.Time
	Address netip.Prefix
	Wait    time.Duration
	byName  map[string]*leaf
	order   []*leaf
	byNum   map[int]int64
	doc     map[string]any
	empty   []string
	Nothing []string
	flags   [2]bool
	share   float64
}

func TestWhatIsFrozenComesBack(t *testing.T) {
	g := NewWithT(t)
	a := &leaf{name: "a/1"}
	b := &leaf{name: "b"}
	a.next = b
	b.next = a // a cycle
	in := tree{
		At:      time.Date(2026, 3, 1, 0, 0, 0, 5, time.UTC),
		Address: netip.MustParsePrefix("10.0.0.1/24"),
		Wait:    time.Hour,
		byName:  map[string]*leaf{"a/1": a, "b": b},
		order:   []*leaf{b, a, nil},
		byNum:   map[int]int64{9: 1 << 62, 10: -1},
		doc: map[string]any{
			"int":     5,
			"float":   1.5,
			"nil":     nil,
			"list":    []any{"x", true, []string{"y"}},
			"strings": map[string]string{"k": "v"},
			"$ref":    "#/definitions/x",
			"odd":     map[string]any{"$go": "int"},
			"none":    []any(nil),
			"maps":    []map[string]any{{"n": int64(7)}},
		},
		empty: []string{},
		flags: [2]bool{false, true},
		share: 0.1,
	}

	data, err := freeze.Freeze(&in)
	g.Expect(err).NotTo(HaveOccurred())
	var out tree
	g.Expect(freeze.Thaw(data, &out)).To(Succeed())

	g.Expect(out).To(Equal(in))
	g.Expect(out.order[0]).To(BeIdenticalTo(out.byName["b"]))
	g.Expect(out.byName["a/1"].next).To(BeIdenticalTo(out.byName["b"]))
	again, err := freeze.Freeze(&out)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(MatchJSON(data))
}

func TestWhatCannotBeWrittenDownIsAnError(t *testing.T) {
	type secret struct{ n int }
	for _, tc := range []struct {
		name, message string
		value         any
	}{
		{"a function, though it is nil", "/F: a func() cannot be written down", &struct{ F func() }{}},
		{"a channel", "/C: a chan int cannot be written down", &struct{ C chan int }{}},
		{"an interface with methods", "/E: a error cannot be written down", &struct{ E error }{E: errors.New("x")}},
		{"a type of ours inside any", "inside any cannot be read back", &struct{ V any }{V: secret{1}}},
		{"a map by a struct", "/M: a map by", &struct{ M map[secret]int }{M: map[secret]int{{1}: 1}}},
		{"no pointer", "not a pointer", 5},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := freeze.Freeze(tc.value)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.message)))
		})
	}
}

func TestWhatDoesNotFitIsAnError(t *testing.T) {
	for _, tc := range []struct{ name, data, message string }{
		{"a field that is not there", `{"colour": 1}`, "has no field colour"},
		{"another type", `{"share": "x"}`, "/share: string is not a float64"},
		{"a number that is too large", `{"Wait": 1e99}`, "the number 1e99 is not a time.Duration"},
		{"a reference to nothing", `{"order": [{"$ref": "/byName/x"}]}`, "nothing to refer to"},
		{"an unknown type", `{"doc": {"x": {"$go": "chan int"}}}`, "cannot be read back"},
		{"a time that is none", `{"At": "noon"}`, "/At: "},
		{"a key that is no number", `{"byNum": {"x": 1}}`, "is not a number"},
		{"null for a struct", `null`, "is not a"},
		{"no JSON", `{`, "unexpected EOF"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := tree{share: 1}
			g := NewWithT(t)
			g.Expect(freeze.Thaw([]byte(tc.data), &out)).To(MatchError(ContainSubstring(tc.message)))
			g.Expect(out.share).To(Equal(1.0), "it was touched")
		})
	}
}

func FuzzThaw(f *testing.F) {
	f.Add([]byte(`{"byName": {"a": {"name": "a", "next": {"$ref": "/byName/a"}}}, "flags": [true, false]}`))
	f.Fuzz(func(_ *testing.T, data []byte) {
		var out tree
		_ = freeze.Thaw(data, &out) // must not panic
	})
}
