// SPDX-License-Identifier: Apache-2.0

package phases

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

// maxNote is what the events API takes.
const maxNote = 1024

// problemFound records a problem that a condition reports.
func problemFound(r events.EventRecorder, obj runtime.Object, condition string, out Result) {
	r.Eventf(obj, nil, corev1.EventTypeWarning, out.Reason, condition, "%s", Shorten(out.Message))
}

// Happened records as an event what went as intended; reason is also its action.
func Happened(r events.EventRecorder, obj runtime.Object, reason, note string) {
	r.Eventf(obj, nil, corev1.EventTypeNormal, reason, reason, "%s", Shorten(note))
}

// Shorten cuts a note to the length that the events API takes.
func Shorten(note string) string {
	if len(note) <= maxNote {
		return note
	}
	return strings.ToValidUTF8(note[:maxNote-len("…")], "") + "…"
}

// Few lists at most ten names.
func Few(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
