// SPDX-License-Identifier: Apache-2.0

package rde

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestTheReleaseMatchesTheControlPlaneVersion(t *testing.T) {
	machine := func(version string, created time.Time, controlPlane bool) clusterv1.Machine {
		m := clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created)},
			Spec:       clusterv1.MachineSpec{Version: version},
		}
		if controlPlane {
			m.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
		}
		return m
	}
	first := time.Unix(1000, 0)
	later := first.Add(time.Hour)
	for _, test := range []struct {
		name    string
		objects objects
		want    string
	}{
		{
			name:    "the version in the spec of the control plane takes precedence",
			objects: objects{controlPlane: "v1.35.1", machines: []clusterv1.Machine{machine("v1.34.0", first, true)}},
			want:    "v1.35.1",
		},
		{
			name: "without it, the newest control plane machine counts",
			objects: objects{machines: []clusterv1.Machine{
				machine("v1.35.1", later, true),
				machine("v1.34.0", first, true),
			}},
			want: "v1.35.1",
		},
		{
			name: "a worker newer than the control plane does not count",
			objects: objects{machines: []clusterv1.Machine{
				machine("v1.33.0", later, false),
				machine("v1.34.0", first, true),
			}},
			want: "v1.34.0",
		},
		{
			name:    "it is unknown if there are only workers",
			objects: objects{machines: []clusterv1.Machine{machine("v1.33.0", later, false)}},
			want:    "",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)

			g.Expect(test.objects.release()).To(Equal(test.want))
		})
	}
}
