// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
)

const (
	// RecordsName is the name of the ConfigMap with the records of Services. Only the cloud controller manager may
	// write it. Otherwise, users who may edit Services could make it change the load balancer of another Service.
	RecordsName = "cloud-controller-manager-services"
	// recordsTimeout limits requests to the API server.
	recordsTimeout = 10 * time.Second
	// prefixBytes is the length of the digest that distinguishes the records of different processes.
	prefixBytes = 4
)

// A recordStore stores the records of Services in a ConfigMap, with an entry per Service UID. The key prefix identifies
// the cluster and the load balancer class of the process, so that processes for several classes can share the
// ConfigMap. Per class only the leader writes, so it can cache the records.
type recordStore struct {
	client    kubernetes.Interface
	namespace string
	prefix    string
	// manifest is the name of the file with the required permissions.
	manifest string
	// reportMissing is called with a message if a permission is missing. With nil, only the error is returned.
	reportMissing func(message string)

	known    atomic.Pointer[map[types.UID]recordEntry] // nil until they are read; replaced, never modified
	mu       sync.Mutex                                // held during requests
	reported bool
}

// A recordEntry is the value of an entry. The name of the Service is only for human readers.
type recordEntry struct {
	Service string `json:"service"`
	service.Record
}

// recordPrefix returns the prefix of the keys that a process uses in the ConfigMap [RecordsName].
func recordPrefix(d service.Defaults) string {
	sum := sha256.Sum256([]byte(d.Cluster + "\x00" + d.Class))
	return hex.EncodeToString(sum[:prefixBytes]) + "."
}

// Of returns the record of a Service, or the zero Record if it has none.
func (r *recordStore) Of(uid types.UID) service.Record {
	known := r.known.Load()
	if known == nil {
		return service.Record{}
	}
	return (*known)[uid].Record
}

// load reads the records unless they are cached, and creates the ConfigMap if it does not exist. Until load succeeds,
// no load balancer may be changed, because existing ones would be mistaken for those of another owner.
func (r *recordStore) load(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known.Load() != nil {
		return nil
	}
	return r.read(ctx)
}

// refresh reads the records again, because an administrator may have changed them.
func (r *recordStore) refresh(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.read(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot reload the records of Services")
	}
}

// readable returns an error if the permission to read the records is missing. It writes nothing.
func (r *recordStore) readable(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known.Load() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, recordsTimeout)
	defer cancel()
	_, err := r.client.CoreV1().ConfigMaps(r.namespace).Get(ctx, RecordsName, metav1.GetOptions{})
	if apierrors.IsForbidden(err) {
		return r.explained("reading", err)
	}
	return nil
}

func (r *recordStore) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, recordsTimeout)
	defer cancel()
	stored, err := r.client.CoreV1().ConfigMaps(r.namespace).Get(ctx, RecordsName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		stored, err = r.create(ctx)
	}
	if err != nil {
		return r.explained("reading", err)
	}
	r.learn(ctx, stored)
	return nil
}

// create creates the ConfigMap. If a user deleted it, it is created with the cached records.
func (r *recordStore) create(ctx context.Context) (*corev1.ConfigMap, error) {
	data := map[string]string{}
	if known := r.known.Load(); known != nil {
		for uid, entry := range *known {
			value, err := json.Marshal(entry)
			if err != nil {
				return nil, fmt.Errorf("encoding a record: %w", err)
			}
			data[r.key(uid)] = string(value)
		}
	}
	return r.client.CoreV1().ConfigMaps(r.namespace).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: RecordsName},
		Data:       data,
	}, metav1.CreateOptions{})
}

func (r *recordStore) key(uid types.UID) string { return r.prefix + string(uid) }

// learn caches the records that the API server returned.
func (r *recordStore) learn(ctx context.Context, stored *corev1.ConfigMap) {
	known := map[types.UID]recordEntry{}
	for key, value := range stored.Data {
		uid, ours := strings.CutPrefix(key, r.prefix)
		if !ours {
			continue
		}
		var entry recordEntry
		if err := json.Unmarshal([]byte(value), &entry); err != nil {
			klog.FromContext(ctx).Error(err, "Ignored an invalid record of a Service", "key", key)
			continue
		}
		known[types.UID(uid)] = entry
	}
	r.known.Store(&known)
}

// write stores the record of a Service. It removes an empty record.
func (r *recordStore) write(ctx context.Context, s *corev1.Service, record service.Record) error {
	if record.IsEmpty() {
		return r.remove(ctx, s.UID)
	}
	value, err := json.Marshal(recordEntry{
		Service: s.Namespace + "/" + s.Name,
		Record:  record,
	})
	if err != nil {
		return fmt.Errorf("encoding the record of a Service: %w", err)
	}
	return r.patch(ctx, map[string]any{r.key(s.UID): string(value)})
}

// remove removes the records of Services.
func (r *recordStore) remove(ctx context.Context, services ...types.UID) error {
	if len(services) == 0 {
		return nil
	}
	entries := map[string]any{}
	for _, uid := range services {
		entries[r.key(uid)] = nil
	}
	return r.patch(ctx, entries)
}

// all returns the UIDs of the Services that have a record.
func (r *recordStore) all() []types.UID {
	known := r.known.Load()
	if known == nil {
		return nil
	}
	return slices.Collect(maps.Keys(*known))
}

// patch changes entries. A nil value removes an entry. Entries of other Services and of other processes are not
// touched.
func (r *recordStore) patch(ctx context.Context, entries map[string]any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	body, err := json.Marshal(map[string]any{"data": entries})
	if err != nil {
		return fmt.Errorf("encoding the records of Services: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, recordsTimeout)
	defer cancel()
	stored, err := r.sendPatch(ctx, body)
	if apierrors.IsNotFound(err) {
		if stored, err = r.create(ctx); err == nil {
			stored, err = r.sendPatch(ctx, body)
		}
	}
	if err != nil {
		return r.explained("writing", err)
	}
	r.learn(ctx, stored)
	return nil
}

func (r *recordStore) sendPatch(ctx context.Context, body []byte) (*corev1.ConfigMap, error) {
	return r.client.CoreV1().ConfigMaps(r.namespace).Patch(ctx, RecordsName, types.MergePatchType, body,
		metav1.PatchOptions{})
}

// explained adds the remedy to an error. If a permission is missing, it also reports that once.
func (r *recordStore) explained(doing string, err error) error {
	err = fmt.Errorf("%s the records of Services in ConfigMap %s/%s: %w", doing, r.namespace, RecordsName, err)
	if !apierrors.IsForbidden(err) {
		return err
	}
	remedy := fmt.Sprintf("the Role system:cloud-controller-manager in namespace %s needs two rules: {apiGroups: [\"\"], resources: [configmaps], verbs: [create]}, and {apiGroups: [\"\"], resources: [configmaps], resourceNames: [%s], verbs: [get, patch]}. Apply the manifest of this release, not only its image: kubectl apply -f %s", r.namespace, RecordsName, r.manifest)
	if r.reportMissing != nil && !r.reported {
		r.reported = true
		r.reportMissing("Load balancers cannot be reconciled: " + remedy)
	}
	return fmt.Errorf("%w (%s)", err, remedy)
}
