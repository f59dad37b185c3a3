// SPDX-License-Identifier: Apache-2.0

package capvcd

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/simsite"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
)

// capvcdVersion is the release of CAPVCD that the tests upgrade.
const capvcdVersion = "v1.3.2"

// TestClusterctlUpgradesFromCAPVCD replaces an installed CAPVCD by this provider with clusterctl, as users do. The
// cluster is running, being created, or being deleted.
func TestClusterctlUpgradesFromCAPVCD(t *testing.T) {
	requireAll(t)
	for _, s := range scenarios() {
		if !slices.Contains([]string{"two-arm", "created-not-started", "half-deleted"}, s.name) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			a := newAdoption(t, s.name, s.name)
			a.initCAPVCD()
			a.createIn(namespace)
			before := a.uids()
			ran := runningVMs(a.simulator)
			if s.isDeleted {
				a.Expect(a.client.Delete(t.Context(), clusterObject())).To(Succeed())
			}
			began := time.Now()
			a.clusterctl("upgrade", "apply", "--infrastructure=vcd:"+framework.Version)
			t.Logf("clusterctl upgrade apply took %s", time.Since(began).Round(100*time.Millisecond))
			a.expectReplaced()

			a.Expect(a.stack.Unwire(t.Context(), "infrastructure-vcd")).To(Succeed())
			a.installProvider()
			if s.isDeleted {
				a.trustVCD()
				a.expectGone()
				return
			}
			a.awaitReady()
			t.Logf("ready %s after the upgrade began", time.Since(began).Round(100*time.Millisecond))
			a.Expect(a.uids()).To(Equal(before), "objects should not be recreated")
			a.Expect(changesOf(a.simulator, ran, began)).To(BeEmpty(), "VMs should not be written")
		})
	}
}

// initCAPVCD installs CAPVCD with clusterctl in a management cluster that already has Cluster API.
func (a *adoption) initCAPVCD() {
	a.t.Helper()
	a.Expect(a.stack.InstallInventory(a.t.Context())).To(Succeed())
	system, err := os.ReadFile(filepath.Join("testdata", "system.yaml"))
	a.Expect(err).NotTo(HaveOccurred())
	components := []string{string(system)}
	for _, crd := range a.definitions("v1beta2") {
		text, err := yaml.Marshal(crd.Object)
		a.Expect(err).NotTo(HaveOccurred())
		components = append(components, string(text))
	}
	a.repository(capvcdVersion, []byte(strings.Join(components, "\n---\n")))
	a.clusterctl("init", "--infrastructure=vcd:"+capvcdVersion)
	a.repository(framework.Version, a.shipped.components)
}

// repository adds a release of the provider to clusterctl's local repository.
func (a *adoption) repository(version string, components []byte) {
	a.t.Helper()
	releases, err := stack.Releases(a.stack)
	a.Expect(err).NotTo(HaveOccurred())
	files, err := simsite.ReleaseFiles(a.shipped.root, components)
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(a.stack.LocalRepository(stack.Repository{
		Version:     version,
		Files:       files,
		Others:      releases,
		CertManager: stack.CertManager(),
		Variables:   map[string]string{"CLUSTER_TOPOLOGY": "true"},
	})).To(Succeed())
}

// clusterctl runs clusterctl. In parallel, it issues certificates, as cert-manager does.
func (a *adoption) clusterctl(args ...string) {
	a.t.Helper()
	ctx, cancel := context.WithCancel(a.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		issuer := stack.NewIssuer(a.stack)
		for ctx.Err() == nil {
			_ = issuer.Certify(ctx, a.client) // Conflicts with clusterctl are resolved by the next attempt.
			<-time.After(200 * time.Millisecond)
		}
	}()
	defer func() {
		cancel()
		<-ended
	}()
	out, err := a.stack.Clusterctl(ctx, args...)
	a.Expect(err).NotTo(HaveOccurred(), "%s", out)
}

// expectReplaced checks that the manager and clusterctl's inventory are those of this provider.
func (a *adoption) expectReplaced() {
	a.t.Helper()
	deployments := &appsv1.DeploymentList{}
	a.Expect(a.client.List(a.t.Context(), deployments, client.MatchingLabels{
		clusterv1.ProviderNameLabel: "infrastructure-vcd",
	})).To(Succeed())
	a.Expect(deployments.Items).To(HaveLen(1), "the Deployment of CAPVCD should be removed")
	image := deployments.Items[0].Spec.Template.Spec.Containers[0].Image
	a.Expect(image).NotTo(ContainSubstring(capvcdVersion))

	inventory := &unstructured.Unstructured{}
	inventory.SetGroupVersionKind(clusterctlv1.GroupVersion.WithKind("Provider"))
	a.Expect(a.client.Get(a.t.Context(), client.ObjectKey{Namespace: "capvcd-system", Name: "infrastructure-vcd"},
		inventory)).To(Succeed())
	a.Expect(inventory.Object).To(HaveKeyWithValue("version", framework.Version))
}

// uids returns the UIDs of the cluster's objects by kind and name.
func (a *adoption) uids() map[string]types.UID {
	found := map[string]types.UID{}
	for _, kind := range fixtureKinds {
		if kind.Kind == "Secret" { // The Secret of the identity replaces the one with the credentials.
			continue
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		a.Expect(a.client.List(a.t.Context(), list, client.InNamespace(namespace))).To(Succeed())
		for i := range list.Items {
			found[kind.Kind+" "+list.Items[i].Name] = list.Items[i].UID
		}
	}
	return found
}
