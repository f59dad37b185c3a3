// SPDX-License-Identifier: Apache-2.0

package metadata

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// text returns an entry of type string.
func text(key, value string) vcd.MetadataEntry {
	return vcd.MetadataEntry{Key: key, Type: vcd.MetadataString, Access: vcd.MetadataReadWrite, Value: value}
}

// written returns the record of written entries.
func written(entries ...vcd.MetadataEntry) Record {
	return Record{}.Ask(entries).Seen(entries)
}

func TestMissingAndObsoleteEntries(t *testing.T) {
	at := func(value string) vcd.MetadataEntry {
		return vcd.MetadataEntry{Key: "a", Type: vcd.MetadataDateTime, Access: vcd.MetadataReadWrite, Value: value}
	}
	tests := []struct {
		name             string
		written, desired []vcd.MetadataEntry
		missing          []vcd.MetadataEntry
		obsolete         []string
	}{
		{name: "nothing"},
		{name: "a new key", desired: []vcd.MetadataEntry{text("a", "1")}, missing: []vcd.MetadataEntry{text("a", "1")}},
		{name: "an empty value", desired: []vcd.MetadataEntry{text("a", "")}, missing: []vcd.MetadataEntry{text("a", "")}},
		{
			name:    "everything is written already",
			written: []vcd.MetadataEntry{text("a", "1")},
			desired: []vcd.MetadataEntry{text("a", "1")},
		},
		{
			name:     "one entry changed, two removed",
			written:  []vcd.MetadataEntry{text("a", "1"), text("c", "3"), text("b", "2")},
			desired:  []vcd.MetadataEntry{text("a", "9")},
			missing:  []vcd.MetadataEntry{text("a", "9")},
			obsolete: []string{"b", "c"},
		},
		{
			name:    "another type",
			written: []vcd.MetadataEntry{text("a", "2026-12-31T23:59:59Z")},
			desired: []vcd.MetadataEntry{at("2026-12-31T23:59:59Z")},
			missing: []vcd.MetadataEntry{at("2026-12-31T23:59:59Z")},
		},
		{
			name:    "a time in the form of VCD",
			written: []vcd.MetadataEntry{at("2026-12-31T22:59:59.000Z")},
			desired: []vcd.MetadataEntry{at("2026-12-31T23:59:59+01:00")},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			record := RecordOf(written(tt.written...).Entries())

			g.Expect(record.Missing(tt.desired)).To(Equal(tt.missing))
			g.Expect(record.Obsolete(tt.desired)).To(ConsistOf(tt.obsolete))
		})
	}
}

func TestAnEmptyRecordHasNoEntries(t *testing.T) {
	g := NewWithT(t)

	g.Expect(RecordOf(nil).Entries()).To(BeNil())
	g.Expect(RecordOf(nil).Ask([]vcd.MetadataEntry{text("b", ""), text("a", "1")}).Entries()).To(Equal(
		[]infrav1.RecordedMetadata{
			{Key: "a", Access: infrav1.MetadataReadWrite},
			{Key: "b", Access: infrav1.MetadataReadWrite},
		}))
}

func TestUnknownTypesAreRecordedInTheTermsOfTheAPI(t *testing.T) {
	g := NewWithT(t)

	entries := Record{"a": {Type: "MetadataOtherValue", Access: "OTHER", Value: "1"}}.Entries()

	g.Expect(entries).To(Equal([]infrav1.RecordedMetadata{
		{Key: "a", Type: infrav1.MetadataString, Access: infrav1.MetadataPrivate, Value: "1"},
	}))
}

func TestRequestedEntriesArePendingUntilVCDShowsThem(t *testing.T) {
	g := NewWithT(t)
	desired := []vcd.MetadataEntry{text("a", "2"), text("b", "")}

	record := RecordOf(written(text("a", "1")).Ask(desired).Entries())

	g.Expect(record.Open()).To(BeTrue())
	g.Expect(record.Missing(desired)).To(Equal(desired))
	g.Expect(record.Obsolete(nil)).To(Equal([]string{"a", "b"}))
	record = record.Seen([]vcd.MetadataEntry{text("a", "2"), text("b", ""), text("theirs", "x")})
	g.Expect(record.Open()).To(BeFalse())
	g.Expect(record.Missing(desired)).To(BeEmpty())
	g.Expect(record).NotTo(HaveKey("theirs"))
}

func TestAnEntryInTheOtherDomainIsNotOwned(t *testing.T) {
	g := NewWithT(t)
	private := text("a", "1")
	private.Access = vcd.MetadataPrivate

	record := Record{}.Ask([]vcd.MetadataEntry{private}).Seen([]vcd.MetadataEntry{text("a", "1")})

	g.Expect(record).To(BeEmpty())
}

func TestSpecDefaults(t *testing.T) {
	NewWithT(t).Expect(Desired([]infrav1.MetadataEntry{{Key: "a", Value: ptr.To("1")}})).To(
		Equal([]vcd.MetadataEntry{text("a", "1")}))
}
