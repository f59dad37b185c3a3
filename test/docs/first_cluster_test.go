// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
)

const (
	firstClusterPage = "docs/get-started/first-cluster.md"
	provider         = "infrastructure-vcd"
)

// TestFirstClusterPageRunsAsPrinted runs the commands on the page about the first cluster, from the source code to an
// available cluster and its deletion. The images are pushed to a registry in this test. The manager is the program in
// the pushed image.
func TestFirstClusterPageRunsAsPrinted(t *testing.T) {
	if !*asPrinted {
		t.Skip("-as-printed is not set")
	}
	g := NewWithT(t)
	images := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(images.Close)
	host := strings.TrimPrefix(images.URL, "http://")
	w := newBareReaderEnv(t)
	w.replace = append(w.replace, "registry.example.com", host, "providers:\n", w.otherProviders(t))
	machine := newMachine(w)
	machine.start(t)

	w.run(t, firstClusterPage, toRun(t, w.Root, firstClusterPage))

	g.Expect(machine.failure()).NotTo(HaveOccurred())
	g.Expect(machine.image).To(Equal(host + "/kubernetes/cluster-api-vcd-controller:v2.0.0"))
	ccm := host + "/kubernetes/cloud-provider-for-cloud-director:v2.0.0"
	g.Expect(machine.args).To(ContainElement("--cloud-provider-registry=" + host + "/kubernetes"))
	_, err := pull(ccm)
	g.Expect(err).NotTo(HaveOccurred(), "nodes of workload clusters should be able to pull the image")
	g.Expect(w.site.Left()).To(BeEmpty())
}

// newBareReaderEnv returns the environment of a reader whose management cluster has Cluster API, but not this provider.
func newBareReaderEnv(t *testing.T) *readerEnv {
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	site := newSite(t, dir)
	w := baseReaderEnv(site, dir)
	w.limit = 25 * time.Minute // The commands on the page build all programs.
	root, err := framework.Root()
	g.Expect(err).NotTo(HaveOccurred())
	management, err := stack.Start(t.Context(), stack.Options{
		Dir: filepath.Join(dir, "stack"),
		Out: t.Output(),
		Env: site.Workloads.Env(),
	})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(management.Stop()).To(Succeed()) })
	g.Expect(management.InstallInventory(t.Context())).To(Succeed())
	w.ManagementCluster = &framework.ManagementCluster{Stack: management, Root: root}
	w.cloneRepository(t)
	return w
}

// otherProviders returns lines for clusterctl.yaml with local releases of cert-manager and of Cluster API, which
// clusterctl would otherwise download. The lines end with the list of providers.
func (w *readerEnv) otherProviders(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	releases, err := stack.Releases(w.Stack)
	g.Expect(err).NotTo(HaveOccurred())
	path, err := stack.LocalRepository(filepath.Join(w.home, "releases"), stack.Repository{
		Version:     framework.Version,
		Others:      releases,
		CertManager: stack.CertManager(),
	})
	g.Expect(err).NotTo(HaveOccurred())
	content, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	var config struct {
		CertManager any                 `json:"cert-manager"`
		Providers   []map[string]string `json:"providers"`
	}
	g.Expect(yaml.Unmarshal(content, &config)).To(Succeed())
	config.Providers = config.Providers[1:] // The first is this provider.
	lines, err := yaml.Marshal(config)
	g.Expect(err).NotTo(HaveOccurred())
	before, list, found := strings.Cut(string(lines), "providers:\n")
	g.Expect(found).To(BeTrue())
	// The indentation matches the list on the page.
	return before + "providers:\n  " + strings.ReplaceAll(strings.TrimSuffix(list, "\n"), "\n", "\n  ") + "\n"
}

// A machine replaces the nodes of the management cluster: it runs the Deployment of the manager as a process.
type machine struct {
	reader *readerEnv
	image  string
	args   []string
	ended  chan error
}

func newMachine(w *readerEnv) *machine { return &machine{reader: w, ended: make(chan error, 1)} }

// start waits for the Deployment and runs its program in the background.
func (m *machine) start(t *testing.T) {
	t.Helper()
	go func() { m.ended <- m.run(t.Context()) }()
}

// failure returns an error if the manager was not started or failed to start.
func (m *machine) failure() error {
	select {
	case err := <-m.ended:
		return err
	default:
		return fmt.Errorf("the manager was not started")
	}
}

func (m *machine) run(ctx context.Context) error {
	deployment, err := m.awaitDeployment(ctx)
	if err != nil {
		return err
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	m.image = container.Image
	m.args = container.Args
	program := filepath.Join(m.reader.home, "manager-of-the-image")
	if err := extract(m.image, program); err != nil {
		return err
	}
	if err := m.startManager(ctx, program); err != nil {
		return err
	}
	deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation,
		Replicas:           1,
		UpdatedReplicas:    1,
		ReadyReplicas:      1,
		AvailableReplicas:  1,
		Conditions: []appsv1.DeploymentCondition{{
			Type:   appsv1.DeploymentAvailable,
			Status: corev1.ConditionTrue,
		}},
	}
	return m.reader.Client().Status().Update(ctx, deployment)
}

// awaitDeployment waits until clusterctl has created the Deployment of the manager and its webhooks. Meanwhile, it
// issues certificates, as cert-manager does.
func (m *machine) awaitDeployment(ctx context.Context) (*appsv1.Deployment, error) {
	issuer := stack.NewIssuer(m.reader.Stack)
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ticker.C:
		}
		_ = issuer.Certify(ctx, m.reader.Client()) // Conflicts with clusterctl are resolved by the next attempt.
		installed := client.MatchingLabels{"cluster.x-k8s.io/provider": provider}
		var deployments appsv1.DeploymentList
		var webhooks admissionregistrationv1.ValidatingWebhookConfigurationList
		if m.reader.Client().List(ctx, &deployments, installed) != nil || m.reader.Client().List(ctx, &webhooks, installed) != nil {
			continue
		}
		if len(deployments.Items) == 1 && len(webhooks.Items) == 1 {
			return &deployments.Items[0], nil
		}
	}
}

// startManager runs the manager as a process. Webhooks use a local port, because no pods run.
func (m *machine) startManager(ctx context.Context, program string) error {
	release := filepath.Join(m.reader.clone, "out", "release", provider, framework.Version, stack.ComponentsFile)
	components, err := os.ReadFile(release)
	if err != nil {
		return err
	}
	if err := m.reader.Unwire(ctx, provider); err != nil {
		return err
	}
	m.reader.Manager, err = m.reader.InstallProvider(ctx, stack.ProviderInstall{
		ComponentsYAML: components,
		ManagerBinary:  program,
		Version:        framework.Version,
		Env:            m.reader.site.Workloads.Env(),
	})
	if err != nil {
		return err
	}
	return m.reader.Manager.Start(ctx)
}

// pull returns an image like a container runtime on this machine.
func pull(image string) (v1.Image, error) {
	reference, err := name.ParseReference(image)
	if err != nil {
		return nil, err
	}
	return remote.Image(reference)
}

// extract writes the entrypoint of an image to a file.
func extract(image, path string) error {
	pulled, err := pull(image)
	if err != nil {
		return err
	}
	config, err := pulled.ConfigFile()
	if err != nil {
		return err
	}
	entrypoint := config.Config.Entrypoint[0]
	files := mutate.Extract(pulled)
	defer func() { _ = files.Close() }()
	for r := tar.NewReader(files); ; {
		header, err := r.Next()
		if err != nil {
			return fmt.Errorf("extracting %s from %s: %w", entrypoint, image, err)
		}
		if "/"+strings.TrimPrefix(header.Name, "/") != entrypoint {
			continue
		}
		program, err := io.ReadAll(r)
		if err != nil {
			return fmt.Errorf("reading %s in %s: %w", entrypoint, image, err)
		}
		return os.WriteFile(path, program, 0o700)
	}
}
