// SPDX-License-Identifier: Apache-2.0

package vmmetadata

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestWhatIsMissingAndWhatIsObsolete(t *testing.T) {
	tests := []struct {
		name            string
		written, wished map[string]string
		missing         map[string]string
		obsolete        []string
	}{
		{"nothing", nil, nil, map[string]string{}, nil},
		{"a new key", nil, map[string]string{"a": "1"}, map[string]string{"a": "1"}, nil},
		{"an empty value", nil, map[string]string{"a": ""}, map[string]string{"a": ""}, nil},
		{"what is written already", map[string]string{"a": "1"}, map[string]string{"a": "1"}, map[string]string{}, nil},
		{
			"one changed, one gone",
			map[string]string{"a": "1", "c": "3", "b": "2"},
			map[string]string{"a": "9"},
			map[string]string{"a": "9"},
			[]string{"b", "c"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			record := Parse(Record(tt.written).String())

			g.Expect(record.Missing(tt.wished)).To(Equal(tt.missing))
			g.Expect(record.Obsolete(tt.wished)).To(ConsistOf(tt.obsolete))
		})
	}
}

func TestARecordThatCannotBeReadIsEmpty(t *testing.T) {
	for _, text := range []string{"", "null", "[]", "{", `{"a":1}`} {
		NewWithT(t).Expect(Parse(text)).To(BeEmpty(), text)
	}
}

func TestWhatWasAskedForIsOpenUntilVCDShowsIt(t *testing.T) {
	g := NewWithT(t)
	wished := map[string]string{"a": "2", "b": ""}

	record := Parse(Record{"a": "1"}.Ask(wished).String())

	g.Expect(record.Open()).To(BeTrue())
	g.Expect(record.Missing(wished)).To(Equal(wished))
	g.Expect(record.Obsolete(nil)).To(Equal([]string{"a", "b"}))
	record = record.Seen(map[string]string{"a": "2", "b": "", "theirs": "x"})
	g.Expect(record.Open()).To(BeFalse())
	g.Expect(record.Missing(wished)).To(BeEmpty())
	g.Expect(record).NotTo(HaveKey("theirs"))
}
