// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWrittenAt(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	entry := func(age time.Duration, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Time:     &metav1.Time{Time: now.Add(-age)},
			FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	mine := `{"f:metadata":{"f:annotations":{".":{},"f:example.com/key":{}}}}`
	other := `{"f:metadata":{"f:annotations":{"f:example.com/other":{}}},"f:spec":{}}`
	for _, tc := range []struct {
		name    string
		entries []metav1.ManagedFieldsEntry
		age     time.Duration
	}{
		{
			name: "an annotation without a record counts as just written",
		},
		{
			name:    "the time of the entry that owns the annotation counts",
			entries: []metav1.ManagedFieldsEntry{entry(time.Hour, other), entry(time.Minute, mine)},
			age:     time.Minute,
		},
		{
			name:    "the first of several owners counts",
			entries: []metav1.ManagedFieldsEntry{entry(time.Minute, mine), entry(time.Hour, mine)},
			age:     time.Hour,
		},
		{
			name:    "an unreadable entry does not count",
			entries: []metav1.ManagedFieldsEntry{entry(time.Hour, "{"), {FieldsV1: metav1.NewFieldsV1(mine)}},
		},
		{
			name:    "a slow clock does not move the time into the future",
			entries: []metav1.ManagedFieldsEntry{entry(-time.Minute, mine)},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)

			at := writtenAt(tc.entries, "example.com/key", now)

			g.Expect(at).To(Equal(now.Add(-tc.age)))
		})
	}
}
