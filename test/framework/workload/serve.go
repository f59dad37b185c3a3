// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"regexp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const readHeaderTimeout = 30 * time.Second

// silent discards net/http's logs about TLS handshakes that clients abandon.
var silent = log.New(io.Discard, "", 0)

func (a authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// refuse responds with a Status, like an API server.
func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure,
		Code:     int32(code), //nolint:gosec // an HTTP status
		Reason:   reason,
		Message:  err.Error(),
	})
}

// coordination is the path of the API group with leases, which the in-memory server does not have.
const coordination = "/apis/coordination.k8s.io/v1"

// serveLeases responds like an API server without leases: no kube-vip runs on simulated nodes.
func serveLeases(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != coordination {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, errors.New("the cluster has no leases"))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
		GroupVersion: "coordination.k8s.io/v1",
		APIResources: []metav1.APIResource{{
			Name:         "leases",
			SingularName: "lease",
			Namespaced:   true,
			Kind:         "Lease",
			Verbs:        metav1.Verbs{"get"},
		}},
	})
}

var etcdForward = regexp.MustCompile(`\A/api/v1/namespaces/kube-system/pods/etcd-([^/]+)/portforward\z`)

// forwardTarget returns the target node of a port forward.
func (c *cluster) forwardTarget(r *http.Request) (node string, ok bool) {
	m := etcdForward.FindStringSubmatch(r.URL.Path)
	if m == nil {
		return "", false
	}
	return m[1], true
}

func (c *cluster) nodeRuns(node string) bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	m := c.members[node]
	return m != nil && m.up
}

func etcdPodName(node string) string { return "etcd-" + node }

// etcdNode returns the node of an etcd pod.
func etcdNode(pod string) (node string, ok bool) { return strings.CutPrefix(pod, "etcd-") }
