// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"context"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testcni"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/simsite"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const (
	namespace = "team-a"
	token     = "a-token-of-the-manager"
	ccmToken  = "a-token-of-the-cloud-controller-manager"
)

// simulator is the reader's vcdsim command. With --print, it prints the connection data of the running site. Otherwise
// it starts a second site that exits after a few seconds.
const simulator = `#!/usr/bin/env bash
case " $* " in
*" --print "*) exec vcdsim-program "$@" --ca-file ca.pem --tls-cert "$HOME/printing.pem" --tls-key "$HOME/printing.key" ;;
esac
timeout 3 vcdsim-program "$@" --listen 127.0.0.1:0 --ca-file "$HOME/vcdsim.pem" || [ $? = 124 ]
`

// A readerEnv is the environment of a reader of the documentation: a management cluster, a VCD, a clone of the
// repository, and a shell.
type readerEnv struct {
	*framework.ManagementCluster

	site             *simsite.Site
	clone, home, bin string
	plugins          string        // the list of sources of network plug-ins
	replace          []string      // pairs of printed texts and replacements
	limit            time.Duration // maximum time for the commands on a page
}

// newSite starts a VCD in which the reader's API tokens are valid.
func newSite(t *testing.T, dir string) *simsite.Site {
	t.Helper()
	g := NewWithT(t)
	model := vcdsim.K8sTenant()
	for i := range model.Orgs[1].Users {
		user := &model.Orgs[1].Users[i]
		switch {
		case user.Role == vcdsim.RoleCloudProvider:
			user.APITokens = append(user.APITokens, ccmToken)
		case i == 1:
			user.APITokens = append(user.APITokens, token)
		}
	}
	site, err := simsite.Start(t.Context(), dir, model)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(site.Close()).To(Succeed()) })
	return site
}

// baseReaderEnv returns the environment of a reader without a management cluster.
func baseReaderEnv(site *simsite.Site, dir string) *readerEnv {
	return &readerEnv{
		site:    site,
		clone:   filepath.Join(dir, "clone"),
		home:    filepath.Join(dir, "home"),
		bin:     filepath.Join(dir, "bin"),
		replace: []string{"https://vcd.example.com", site.Simulator.URL(), "https://127.0.0.1:8443", site.Simulator.URL()},
		limit:   4 * time.Minute,
	}
}

func newReaderEnv(t *testing.T) *readerEnv {
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	site := newSite(t, dir)
	w := baseReaderEnv(site, dir)
	var err error
	w.ManagementCluster, err = site.NewManagementCluster(t.Context(), framework.Options{Dir: "stack", Out: t.Output()})
	g.Expect(err).NotTo(HaveOccurred())
	w.cloneRepository(t)
	w.installPrograms(t)
	g.Expect(w.applyManager(t.Context())).To(Succeed())
	go w.markRolledOut(t.Context())
	return w
}

// cloneRepository creates the clone, the home folder and the namespace of the reader.
func (w *readerEnv) cloneRepository(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	for _, folder := range []string{w.clone, w.home, w.bin} {
		g.Expect(os.MkdirAll(folder, 0o750)).To(Succeed())
	}
	plugins, err := testcni.WriteSources(w.home)
	g.Expect(err).NotTo(HaveOccurred())
	w.plugins = plugins
	g.Expect(os.WriteFile(filepath.Join(w.clone, "ca.pem"), w.site.Simulator.CA(), 0o600)).To(Succeed())
	kubeconfig, err := os.ReadFile(w.Kubeconfig())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(w.kubeconfig(), kubeconfig, 0o600)).To(Succeed())
	w.shell(t, `git -C "$ROOT" ls-files -z --cached --others --exclude-standard | tar -C "$ROOT" --null -T - -c | tar -x
git init -q .
kubectl create namespace `+namespace+`
kubectl config set-context --current --namespace=`+namespace)
}

// installPrograms builds the programs in the reader's PATH.
func (w *readerEnv) installPrograms(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(framework.Build(t.Context(), w.Root, "./cmd/vcdctl", filepath.Join(w.bin, "vcdctl"))).To(Succeed())
	g.Expect(framework.Build(t.Context(), w.Root, "./cmd/vcdsim", filepath.Join(w.bin, "vcdsim-program"))).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(w.bin, "vcdsim"), []byte(simulator), 0o700)).To(Succeed())
	authority, err := vcdsim.NewAuthority() // for the command with --print, which starts no site
	g.Expect(err).NotTo(HaveOccurred())
	key, err := authority.Key()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(w.home, "printing.pem"), authority.Certificate(), 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(w.home, "printing.key"), key, 0o600)).To(Succeed())
	// The editor is a no-op.
	g.Expect(os.WriteFile(filepath.Join(w.bin, "vi"), []byte("#!/bin/sh\n"), 0o700)).To(Succeed())
}

// applyManager creates the Deployment of the manager. The stack already runs its program as a process.
func (w *readerEnv) applyManager(ctx context.Context) error {
	objects, err := utilyaml.ToUnstructured(w.Components)
	if err != nil {
		return err
	}
	for i := range objects {
		if objects[i].GetKind() == "Deployment" {
			return w.Apply(ctx, objects[i])
		}
	}
	return nil
}

// markRolledOut marks Deployments and DaemonSets as rolled out, because the stack has no nodes.
func (w *readerEnv) markRolledOut(ctx context.Context) {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		var deployments appsv1.DeploymentList
		if w.Client().List(ctx, &deployments) == nil {
			for i := range deployments.Items {
				d := &deployments.Items[i]
				if n := *d.Spec.Replicas; d.Status.ObservedGeneration != d.Generation {
					d.Status = appsv1.DeploymentStatus{
						ObservedGeneration: d.Generation,
						Replicas:           n,
						UpdatedReplicas:    n,
						ReadyReplicas:      n,
						AvailableReplicas:  n,
					}
					_ = w.Client().Status().Update(ctx, d)
				}
			}
		}
		var sets appsv1.DaemonSetList
		if w.Client().List(ctx, &sets) == nil {
			for i := range sets.Items {
				if d := &sets.Items[i]; d.Status.ObservedGeneration != d.Generation {
					d.Status = appsv1.DaemonSetStatus{ObservedGeneration: d.Generation}
					_ = w.Client().Status().Update(ctx, d)
				}
			}
		}
	}
}

func (w *readerEnv) kubeconfig() string { return filepath.Join(w.home, "kubeconfig") }

// sortPages sorts the page that creates the cluster first, and the pages that replace or delete it last.
func (w *readerEnv) sortPages(all []string) []string {
	position := func(page string) int {
		if slices.Contains(setupPages(), page) {
			return -1
		}
		return slices.Index(finalPages(), page) + 1
	}
	slices.SortStableFunc(all, func(a, b string) int { return position(a) - position(b) })
	return all
}

// run runs the blocks on a page in one shell, between the commands of the page's setup.
func (w *readerEnv) run(t *testing.T, page string, blocks []block) {
	t.Helper()
	s := setups()[page]
	w.lookUpNames(t)
	var script strings.Builder
	script.WriteString(s.before + "\n")
	for _, b := range blocks {
		text := strings.NewReplacer(append(slices.Clone(s.replace), w.replace...)...).Replace(b.text)
		script.WriteString("echo " + strconv.Quote("--- block") + "\n" + text)
	}
	w.writeSamples(t, page)
	t.Cleanup(func() { w.shell(t, s.after) })
	w.shell(t, script.String())
}

// writeSamples writes all blocks on the page to files, so that a setup can apply them.
func (w *readerEnv) writeSamples(t *testing.T, page string) {
	t.Helper()
	g := NewWithT(t)
	dir := filepath.Join(w.home, "samples")
	g.Expect(os.RemoveAll(dir)).To(Succeed())
	g.Expect(os.MkdirAll(dir, 0o750)).To(Succeed())
	for i, b := range blocksOf(t, filepath.Join(w.Root, page)) {
		g.Expect(os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), []byte(b.text), 0o600)).To(Succeed())
	}
}

// lookUpNames replaces the printed name of a machine by the name of an existing one.
func (w *readerEnv) lookUpNames(t *testing.T) {
	t.Helper()
	if len(w.replace) > 4 {
		return
	}
	machines := &metav1.PartialObjectMetadataList{}
	machines.SetGroupVersionKind(infrav1.GroupVersion.WithKind("VCDMachineList"))
	NewWithT(t).Expect(w.Client().List(t.Context(), machines, client.InNamespace(namespace))).To(Succeed())
	for i := range machines.Items {
		if name := machines.Items[i].Name; strings.HasPrefix(name, "demo-md-0-") {
			w.replace = append(w.replace, "demo-md-0-abcde", name)
			return
		}
	}
}

// shell runs a script with bash in the clone and the reader's environment.
func (w *readerEnv) shell(t *testing.T, script string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), w.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail")
	cmd.Stdin = strings.NewReader(script)
	cmd.Dir = w.clone
	cmd.WaitDelay = time.Second // Its children may keep the output open.
	cmd.Env = append(os.Environ(), w.environment(t)...)

	out, err := cmd.CombinedOutput()

	if err != nil || *printed {
		t.Logf("%s\noutput:\n%s", script, out)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (w *readerEnv) environment(t *testing.T) []string {
	t.Helper()
	env := []string{
		"PATH=" + strings.Join([]string{
			w.bin,
			filepath.Dir(w.Bin(programs.Kubectl)),
			filepath.Dir(w.Bin(programs.Clusterctl)),
			os.Getenv("PATH"),
		}, ":"),
		"HOME=" + w.home,
		"KUBECONFIG=" + w.kubeconfig(),
		"ROOT=" + w.Root,
		"XDG_CONFIG_HOME=",
		"SAMPLES=" + w.home + "/samples",
		"CLUSTERCTL_DISABLE_VERSIONCHECK=true",
		"CNI_SOURCES=" + w.plugins,
		"TOKEN=" + token,
		"CCM_TOKEN=" + ccmToken,
		"VCD_CA_BUNDLE_B64=" + base64.StdEncoding.EncodeToString(w.site.Simulator.CA()),
		"WORKLOAD_PROXY=" + w.site.Workloads.ProxyURL(),
	}
	out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "go", "env", "GOCACHE", "GOMODCACHE", "GOPATH").Output()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for i, value := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		env = append(env, []string{"GOCACHE", "GOMODCACHE", "GOPATH"}[i]+"="+value)
	}
	return env
}
