// SPDX-License-Identifier: Apache-2.0

package service

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
)

const (
	// digestBytes is how much of a digest an annotation holds.
	digestBytes = 8
	// maxFurther is how many values of an annotation are read besides one for each location of the configuration. The
	// core writes fewer; others may have written any number.
	maxFurther = 16
)

// A Key proves that the core wrote what is stored on Services. Those who may only edit Services must not see it. The
// zero Key is not known yet: nothing is proved, and nothing may be stored.
type Key struct{ value atomic.Pointer[[]byte] }

// NewKey returns a key that is known.
func NewKey(value []byte) *Key {
	k := &Key{}
	k.Set(value)
	return k
}

// Set makes the key known.
func (k *Key) Set(value []byte) { k.value.Store(&value) }

// Known reports whether the key is known.
func (k *Key) Known() bool { return k != nil && k.value.Load() != nil }

// Stored is what the core has stored on a Service.
type Stored struct {
	Intent   []netip.Addr
	Standing []string
	// Unproved are further values in each annotation: of an older build, of another key, copied or written by hand.
	Unproved struct{ Intent, Standing []string }
}

// Bind returns the value of an annotation that the core writes: each value with a digest of the key, the id of the
// cluster, the class, the Service and the value itself. What is copied from another Service, changed by hand, or
// written by a process for another id or class has no valid digest.
func (d Defaults) Bind(s *corev1.Service, values []string) string {
	out := make([]string, 0, len(values))
	for _, v := range values {
		out = append(out, v+"="+d.digest(s, v))
	}
	return strings.Join(out, ",")
}

// digest returns the digest of a value; empty, which is none, if the key is not known.
func (d Defaults) digest(s *corev1.Service, value string) string {
	if !d.Key.Known() {
		return ""
	}
	mac := hmac.New(sha256.New, *d.Key.value.Load())
	mac.Write([]byte(d.Cluster + "\x00" + string(s.UID) + "\x00" + value))
	if d.Class != "" {
		mac.Write([]byte("\x00" + d.Class))
	}
	return hex.EncodeToString(mac.Sum(nil)[:digestBytes])
}

// bound returns the values of an annotation that were written for the Service, and all others, of the first ones.
func (d Defaults) bound(s *corev1.Service, annotation string) (values, unproved []string) {
	read := 0
	for x := range strings.SplitSeq(s.Annotations[annotation], ",") {
		if x = strings.TrimSpace(x); x == "" {
			continue
		}
		if read++; read > len(d.Locations)+maxFurther {
			break
		}
		value := x
		digest := ""
		if i := strings.LastIndex(x, "="); i >= 0 {
			value = x[:i]
			digest = x[i+1:]
		}
		if digest != "" && hmac.Equal([]byte(digest), []byte(d.digest(s, value))) {
			values = append(values, value)
		} else {
			unproved = append(unproved, value)
		}
	}
	return values, unproved
}

// Stored returns what the core has stored on a Service.
func (d Defaults) Stored(s *corev1.Service) (out Stored) {
	if d.Dialect == nil {
		return out
	}
	names := d.Dialect.Names()
	intent := []string(nil)
	intent, out.Unproved.Intent = d.bound(s, names.Intent)
	out.Standing, out.Unproved.Standing = d.bound(s, names.Standing)
	for _, text := range intent {
		if a, err := netip.ParseAddr(text); err == nil {
			out.Intent = append(out.Intent, a.Unmap())
		}
	}
	return out
}
