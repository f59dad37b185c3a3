// SPDX-License-Identifier: Apache-2.0

package phases

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

// maxNote is the maximum length of a note in the events API, in bytes.
const maxNote = 1024

// problemFound records a problem that a condition reports as a Warning event. The condition is also its action.
func problemFound(r events.EventRecorder, obj runtime.Object, condition string, out Result) {
	r.Eventf(obj, nil, corev1.EventTypeWarning, out.Reason, condition, "%s", Shorten(out.Message))
}

// Happened records a Normal event for something that went as intended. The reason is also its action.
func Happened(r events.EventRecorder, obj runtime.Object, reason, note string) {
	r.Eventf(obj, nil, corev1.EventTypeNormal, reason, reason, "%s", Shorten(note))
}

// Shorten truncates a note to the length that the events API accepts.
func Shorten(note string) string {
	if len(note) <= maxNote {
		return note
	}
	return strings.ToValidUTF8(note[:maxNote-len("…")], "") + "…"
}

// Few joins at most ten names, and adds the number of the remaining ones.
func Few(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
