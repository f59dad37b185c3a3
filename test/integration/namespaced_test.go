// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/audit"
)

// TestTheManagerOfOneNamespaceNeedsRightsThereOnly runs a manager with only the permissions of config/namespaced.
func TestTheManagerOfOneNamespaceNeedsRightsThereOnly(t *testing.T) {
	t.Parallel()
	const account = "namespaced"
	s := newBareSite(t, replica{label: account})
	m, err := shared.Manager.Replica(t.Context(), account, "--watch-filter="+account, "--namespace="+s.namespace,
		"--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields")
	s.g.Expect(err).NotTo(HaveOccurred())
	s.g.Expect(m.As(t.Context(), account, namespacedRights(s.g, s.namespace, account)...)).To(Succeed())
	s.g.Expect(m.Start(t.Context())).To(Succeed())
	t.Cleanup(func() { s.g.Expect(m.Stop()).To(Succeed()) })
	s.replica = replica{Manager: m, label: account, namespace: s.namespace, down: &sync.Mutex{}}
	s.identify()

	s.ready(s.cluster("alpha"))
	s.ready(s.machine("alpha", "alpha-0"))
	s.deleteMachine("alpha-0")
	s.deleteCluster("alpha")

	s.empty()
	requests, err := readAudit(shared.AuditLog())
	s.g.Expect(err).NotTo(HaveOccurred())
	found := audit.Compare(requests, "system:serviceaccount:"+framework.Namespace+":"+account, nil)
	s.g.Expect(found.Requests).NotTo(BeZero())
	s.g.Expect(found.Denied).To(BeEmpty())
}

// namespacedRights returns the RBAC objects of the overlay config/namespaced, for the given namespace and service
// account.
func namespacedRights(g *WithT, namespace, account string) []unstructured.Unstructured {
	var objects []unstructured.Unstructured
	for _, file := range []string{"role_binding.yaml", "cluster_role.yaml", "secrets_role.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "config", "namespaced", file))
		g.Expect(err).NotTo(HaveOccurred())
		changed := strings.NewReplacer("team-a", namespace, "name: capvcd-manager\n", "name: "+account+"\n").
			Replace(string(text))
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(changed)), 4096)
		for {
			object := unstructured.Unstructured{}
			err := decoder.Decode(&object)
			if errors.Is(err, io.EOF) {
				break
			}
			g.Expect(err).NotTo(HaveOccurred())
			objects = append(objects, object)
		}
	}
	return objects
}
