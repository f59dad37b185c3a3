package service

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/plan"
)

// digestBytes is how much of a digest an annotation holds.
const digestBytes = 8

// Bind returns the value of an annotation that the core writes: each value with a digest of the cluster, the Service
// and the value itself. What is copied from another Service, or changed by hand, has no valid digest.
func (d Defaults) Bind(s *corev1.Service, values []string) string {
	out := make([]string, 0, len(values))
	for _, v := range values {
		out = append(out, v+"="+d.digest(s, v))
	}
	return strings.Join(out, ",")
}

// digest depends on the id of the cluster, which those who may only edit Services do not see.
func (d Defaults) digest(s *corev1.Service, value string) string {
	mac := hmac.New(sha256.New, []byte(d.Cluster))
	mac.Write([]byte(string(s.UID) + "\x00" + value))
	return hex.EncodeToString(mac.Sum(nil)[:digestBytes])
}

// bound returns the values of an annotation that were written for the Service, and reports whether others are there.
func (d Defaults) bound(s *corev1.Service, annotation string) (values []string, others bool) {
	for _, x := range List(s.Annotations[annotation]) {
		i := strings.LastIndex(x, "=")
		if i < 0 || !hmac.Equal([]byte(x[i+1:]), []byte(d.digest(s, x[:i]))) {
			others = true
			continue
		}
		values = append(values, x[:i])
	}
	return values, others
}

// read returns what the annotations of a Service ask for and what the core has stored in them, what is wrong with the
// former, and notices of the latter.
func (d Defaults) read(s *corev1.Service) (asked Asked, wrong, notices []plan.Finding) {
	asked, wrong = d.Dialect.Read(s)
	names := d.Dialect.Names()
	addresses, otherAddresses := d.bound(s, names.Intent)
	standing, otherLocations := d.bound(s, names.Standing)
	for _, text := range addresses {
		if a, err := netip.ParseAddr(text); err == nil {
			asked.Intent = append(asked.Intent, a.Unmap())
		}
	}
	asked.Standing = standing
	for name, ignored := range map[string]bool{names.Intent: otherAddresses, names.Standing: otherLocations} {
		if ignored {
			notices = append(notices, finding(BadAnnotation,
				"the annotation %s, or a part of it, was not written for this Service by the cloud controller manager "+
					"and is ignored: remove it", name))
		}
	}
	slices.SortFunc(notices, func(a, b plan.Finding) int { return strings.Compare(a.Message, b.Message) })
	return asked, wrong, notices
}
