// SPDX-License-Identifier: Apache-2.0

package capvcd

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/providerid"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/memory"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/simsite"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// record makes the tests rewrite their fixtures.
var record = flag.Bool("record", false, "write the fixtures of adoption with VMware's manager")

// Environment variables with the paths of VMware's files.
const (
	// managerVariable contains the path of CAPVCD's manager.
	managerVariable = "CAPVCD_MANAGER"
	// componentsVariable contains the path of the components file of CAPVCD's release.
	componentsVariable = "CAPVCD_COMPONENTS"
)

// clusterTimeout is the maximum time for a cluster. CAPVCD checks each booting machine up to four times, 10 s apart.
const clusterTimeout = 10 * time.Minute

// A capvcdSetup is a management cluster with VMware's release of CAPVCD 1.3.2, and a simulated VCD.
type capvcdSetup struct {
	*WithT

	t       *testing.T
	site    *simsite.Site
	stack   *stack.Stack
	client  client.Client
	manager *capvcd
	ours    *stack.Manager // this provider, once it is installed
	before  []string       // objects on gateways before the first cluster
}

// startCAPVCDSetup starts Cluster API and a simulated VCD, and installs the CRDs of CAPVCD. It skips the test without
// VMware's files.
func startCAPVCDSetup(t *testing.T, model vcdsim.Model) *capvcdSetup {
	t.Helper()
	requireCAPVCD(t)
	o := &capvcdSetup{WithT: NewWithT(t), t: t}
	var err error
	o.site, err = simsite.Start(t.Context(), t.TempDir(), model)
	o.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = o.site.Close() })
	o.before = documents(o.site.Simulator)
	o.stack, err = stack.Start(t.Context(), stack.Options{
		Dir:   t.TempDir(),
		Out:   t.Output(),
		Parts: []stack.Part{stack.Core, stack.Bootstrap, stack.ControlPlane},
		Env:   o.site.Workloads.Env(),
	})
	o.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = o.stack.Stop() })
	o.client, err = client.New(o.stack.RESTConfig(), client.Options{Scheme: newScheme()})
	o.Expect(err).NotTo(HaveOccurred())
	o.installCRDs()
	return o
}

// installCRDs installs the CRDs of CAPVCD without conversion webhooks, because no object is stored in the first
// version.
func (o *capvcdSetup) installCRDs() {
	o.t.Helper()
	components, err := os.ReadFile(os.Getenv(componentsVariable))
	o.Expect(err).NotTo(HaveOccurred())
	var crds []unstructured.Unstructured
	for _, object := range parse(o.WithT, components) {
		if object.GetKind() == "CustomResourceDefinition" {
			unstructured.RemoveNestedField(object.Object, "spec", "conversion")
			crds = append(crds, object)
		}
	}
	o.Expect(o.stack.InstallCRDs(o.t.Context(), crds...)).To(Succeed())
}

func parse(g *WithT, documents []byte) []unstructured.Unstructured {
	var objects []unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(documents), 4096)
	for {
		object := unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		g.Expect(err).NotTo(HaveOccurred())
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// startManager starts CAPVCD. It runs until stopManager is called or the test ends.
func (o *capvcdSetup) startManager(env ...string) { o.manager = startCAPVCD(o.t, o.stack, env...) }

func (o *capvcdSetup) stopManager() { o.manager.stop() }

// requireCAPVCD skips a test without the manager and the components file of CAPVCD.
func requireCAPVCD(t *testing.T) {
	t.Helper()
	if os.Getenv(managerVariable) == "" || os.Getenv(componentsVariable) == "" {
		t.Skipf("needs CAPVCD's manager and components file: set %s and %s", managerVariable, componentsVariable)
	}
}

// A capvcd is a running manager of CAPVCD.
type capvcd struct {
	command *exec.Cmd
	ended   chan struct{}
}

// startCAPVCD starts CAPVCD for a management cluster. It runs until stop is called or the test ends.
func startCAPVCD(t *testing.T, in *stack.Stack, env ...string) *capvcd {
	t.Helper()
	g := NewWithT(t)
	log, err := os.OpenFile(in.LogDir()+"/capvcd.log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	g.Expect(err).NotTo(HaveOccurred())
	command := exec.CommandContext(t.Context(), os.Getenv(managerVariable),
		"--sync-period=30s", "--health-probe-bind-address=127.0.0.1:0", "--diagnostics-address=127.0.0.1:0",
		"--insecure-diagnostics=true")
	command.Env = append(os.Environ(), "KUBECONFIG="+in.Kubeconfig(), "ENABLE_WEBHOOKS=false")
	command.Env = append(command.Env, env...)
	command.Stdout = log
	command.Stderr = log
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGKILL) }
	g.Expect(command.Start()).To(Succeed())
	c := &capvcd{
		command: command,
		ended:   make(chan struct{}),
	}
	go func() {
		_ = command.Wait()
		_ = log.Close()
		close(c.ended)
	}()
	t.Cleanup(c.stop)
	return c
}

// stop kills the manager.
func (c *capvcd) stop() {
	_ = c.command.Process.Kill()
	<-c.ended
}

// create creates the objects of a scenario's cluster.
func (o *capvcdSetup) create(s scenario) {
	o.t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "cluster.yaml"))
	o.Expect(err).NotTo(HaveOccurred())
	site := o.site.Simulator.State().Model.Orgs[1]
	variables := map[string]string{
		"NAME":           clusterName,
		"NAMESPACE":      namespace,
		"USERNAME":       site.Users[1].Name,
		"PASSWORD":       site.Users[1].Password,
		"SITE":           o.site.Simulator.URL(),
		"ORG":            site.Name,
		"VDC":            site.VDCs[0].Name,
		"NETWORK":        site.VDCs[0].Networks[0].Name,
		"CATALOG":        site.Catalogs[0].Name,
		"TEMPLATE":       simsite.TemplateName(programs.KubernetesVersion),
		"VERSION":        programs.KubernetesVersion,
		"CONTROL_PLANES": strconv.Itoa(s.controlPlanes),
		"WORKERS":        strconv.Itoa(s.workers),
		"ONE_ARM":        strconv.FormatBool(s.oneArm),
		"RDE_ID":         o.addEntity(s.entity),
	}
	expanded := os.Expand(string(text), func(key string) string { return variables[key] })
	objects := parse(o.WithT, []byte(expanded))
	for i := range s.extraPools {
		extra := strings.ReplaceAll(expanded, clusterName+"-workers", fmt.Sprintf("%s-workers-%d", clusterName, i+2))
		objects = append(objects, slices.DeleteFunc(parse(o.WithT, []byte(extra)),
			func(u unstructured.Unstructured) bool { return !strings.Contains(u.GetName(), "-workers-") })...)
	}
	for _, object := range objects {
		o.Expect(o.client.Create(o.t.Context(), &object)).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
	}
}

// addEntity creates an entity that belongs to the user of CAPVCD, and returns its URN. If content is nil, it returns an
// empty string.
func (o *capvcdSetup) addEntity(content map[string]any) string {
	if content == nil {
		return ""
	}
	var urn string
	o.site.Simulator.Edit(func(e *vcdsim.Editor) {
		org := &e.Model.Orgs[1]
		user := org.Users[1]
		urn = e.AddDocument("1.0.0/entities", "entity", org.ID, "", map[string]any{
			"id":         "urn:vcloud:entity:vmware:capvcdCluster:2b7f5a3e-7b0f-4a53-9a56-0f0d2f1f6f0a",
			"entityType": "urn:vcloud:type:vmware:capvcdCluster:1.3.0",
			"name":       clusterName,
			"state":      "RESOLVED",
			"owner":      map[string]any{"id": "urn:vcloud:user:" + user.ID, "name": user.Name},
			"org":        map[string]any{"id": "urn:vcloud:org:" + org.ID, "name": org.Name},
			"entity":     content,
		})
	})
	o.before = documents(o.site.Simulator) // The entity is not deleted with the cluster.
	return urn
}

// entityOfCSE returns the entity that the server of Container Service Extension creates before it requests a cluster
// from CAPVCD.
func entityOfCSE() map[string]any {
	return map[string]any{
		"apiVersion": "capvcd.vmware.com/v1.1",
		"kind":       "CAPVCDCluster",
		"metadata":   map[string]any{"name": clusterName, "orgName": "acme", "virtualDataCenterName": "acme-vdc"},
		"spec": map[string]any{
			"capiYaml": "",
			"vcdKe":    map[string]any{"isVCDKECluster": true, "autoRepairOnErrors": false},
		},
		"status": map[string]any{
			"vcdKe": map[string]any{"state": "provisioned", "vcdKeVersion": "4.2.0"},
		},
	}
}

// initializeNodes sets the provider IDs of the nodes of a cluster, like VMware's cloud controller manager.
func (o *capvcdSetup) initializeNodes(ctx context.Context, cluster string) error {
	kubeconfig, err := o.site.Workloads.AdminKubeconfig(cluster)
	if err != nil {
		return err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return err
	}
	workload, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	nodes := &corev1.NodeList{}
	if err := workload.List(ctx, nodes); err != nil {
		return err
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		for _, m := range o.site.Workloads.Machines() {
			if m.Node != node.Name || node.Spec.ProviderID != "" {
				continue
			}
			node.Spec.ProviderID = providerid.Prefix + "urn:vcloud:vm:" + m.VMID
			node.Spec.Taints = nil
			if err := workload.Update(ctx, node); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitMachines waits until the cluster has the given number of running machines with nodes.
func (o *capvcdSetup) awaitMachines(machines int) {
	o.t.Helper()
	o.Eventually(func(g Gomega) {
		_ = o.initializeNodes(o.t.Context(), clusterName)
		list := &clusterv1.MachineList{}
		g.Expect(o.client.List(o.t.Context(), list, client.InNamespace(namespace),
			client.MatchingLabels{clusterv1.ClusterNameLabel: clusterName})).To(Succeed())
		g.Expect(list.Items).To(HaveLen(machines))
		for i := range list.Items {
			g.Expect(list.Items[i].Status.Phase).To(Equal(string(clusterv1.MachinePhaseRunning)), list.Items[i].Name)
		}
	}, clusterTimeout, "1s").Should(Succeed())
}

// clusterName is the name of the cluster of each scenario.
const clusterName = "prod"

// A scenario is a cluster that CAPVCD creates.
type scenario struct {
	name          string
	model         func() vcdsim.Model
	env           []string // environment variables of CAPVCD
	oneArm        bool
	controlPlanes int
	workers       int // per pool
	extraPools    int // additional pools of workers
	// entity is the runtime defined entity that the requester of the cluster creates for CAPVCD. nil means none.
	entity map[string]any
	// then is called when the cluster is complete, while CAPVCD is running. It may be nil.
	then func(*capvcdSetup)
	// until reports whether CAPVCD should be stopped. nil means when the cluster is complete and then has returned.
	until func(*capvcdSetup) bool
	// isDeleted reports whether the cluster is being deleted when CAPVCD is stopped.
	isDeleted bool
}

// machines returns the number of machines of the cluster.
func (s scenario) machines() int { return s.controlPlanes + s.workers*(1+s.extraPools) }

const withoutEntity = "CAPVCD_SKIP_RDE=true"

func scenarios() []scenario {
	return []scenario{
		{
			name:          "two-arm",
			model:         vcdsim.K8sTenant,
			env:           []string{withoutEntity},
			controlPlanes: 3,
			workers:       2,
		},
		{
			name:          "one-arm-with-entity",
			model:         vcdsim.K8sTenant,
			oneArm:        true,
			controlPlanes: 1,
			workers:       1,
		},
		{
			name:          "ip-spaces",
			model:         vcdsim.IPSpaces,
			env:           []string{withoutEntity},
			controlPlanes: 1,
			workers:       1,
		},
		{
			name:          "several-pools",
			model:         vcdsim.K8sTenant,
			env:           []string{withoutEntity},
			controlPlanes: 1,
			workers:       1,
			extraPools:    2,
		},
		{
			name:          "renamed-vdc",
			model:         vcdsim.K8sTenant,
			env:           []string{withoutEntity},
			controlPlanes: 1,
			workers:       1,
			then:          func(o *capvcdSetup) { o.renameVDC() },
		},
		{
			name:          "made-by-cse",
			model:         vcdsim.K8sTenant,
			controlPlanes: 1,
			workers:       1,
			entity:        entityOfCSE(),
		},
		{
			name:          "twenty-machines",
			model:         vcdsim.K8sTenant,
			env:           []string{withoutEntity},
			controlPlanes: 3,
			workers:       17,
		},
		{
			name:          "created-not-started",
			model:         vcdsim.K8sTenant,
			env:           []string{withoutEntity},
			controlPlanes: 1,
			workers:       1,
			until:         func(o *capvcdSetup) bool { return len(vmsInState(o.site.Simulator, vcdsim.PoweredOff)) > 0 },
		},
		{
			name:          "started-not-recorded",
			model:         vcdsim.K8sTenant,
			env:           []string{withoutEntity},
			controlPlanes: 1,
			workers:       1,
			until:         func(o *capvcdSetup) bool { return len(vmsInState(o.site.Simulator, vcdsim.PoweredOn)) > 0 },
		},
		{
			name:          "half-deleted",
			model:         vcdsim.K8sTenant,
			env:           []string{withoutEntity},
			controlPlanes: 1,
			workers:       2,
			then:          func(o *capvcdSetup) { o.Expect(o.client.Delete(o.t.Context(), clusterObject())).To(Succeed()) },
			until:         func(o *capvcdSetup) bool { return len(o.vms()) < 3 },
			isDeleted:     true,
		},
	}
}

// scenarioOf returns the scenario with the given name.
func scenarioOf(name string) scenario {
	all := scenarios()
	return all[slices.IndexFunc(all, func(s scenario) bool { return s.name == name })]
}

func clusterObject() *clusterv1.Cluster {
	cluster := &clusterv1.Cluster{}
	cluster.Namespace = namespace
	cluster.Name = clusterName
	return cluster
}

// TestClustersOfCAPVCDAreAdopted creates clusters with CAPVCD, replaces CAPVCD by this provider, and operates the
// clusters until they are deleted.
func TestClustersOfCAPVCDAreAdopted(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			o := startCAPVCDSetup(t, s.model())
			o.createCluster(s)
			if *record {
				o.record(s.name)
				return
			}
			o.adoptCluster(s)
		})
	}
}

// createCluster creates the cluster of a scenario with CAPVCD, and then stops CAPVCD.
func (o *capvcdSetup) createCluster(s scenario) {
	o.t.Helper()
	o.startManager(s.env...)
	o.create(s)
	if s.until == nil || s.then != nil {
		o.awaitMachines(s.machines())
	}
	if s.then != nil {
		s.then(o)
	}
	if s.until != nil {
		o.Eventually(func() bool { return s.until(o) }, clusterTimeout, "5ms").Should(BeTrue())
	}
	logMemory(o.t, "CAPVCD", o.manager.command.Process.Pid)
	o.stopManager()
}

// adoptCluster replaces CAPVCD by this provider, and operates the cluster until it is deleted.
func (o *capvcdSetup) adoptCluster(s scenario) {
	o.t.Helper()
	before := o.vms()
	ran := runningVMs(o.site.Simulator)
	began := time.Now()
	o.replace()
	o.Eventually(func(g Gomega) { trustSite(o.t.Context(), g, o.client, o.site.Simulator.CA()) }, timeout, "100ms").
		Should(Succeed())
	if s.isDeleted {
		o.expectGone()
		return
	}
	o.awaitMachines(s.machines())
	o.awaitReady(s.machines())
	o.t.Logf("ready %s after the start of the manager was requested", time.Since(began).Round(time.Second))
	o.Expect(changesOf(o.site.Simulator, ran, began)).To(BeEmpty(), "VMs should not be written")

	o.scaleWorkers(s.workers + 1)
	o.awaitMachines(s.machines() + 1)
	o.rollOut()
	o.awaitReplaced(before, s.machines()+1)
	logMemory(o.t, "this provider", o.ours.PID())
	o.delete()
}

// renameVDC renames the VDC of the cluster. CAPVCD continues to use the ID in the status.
func (o *capvcdSetup) renameVDC() {
	o.site.Simulator.Edit(func(e *vcdsim.Editor) { e.Model.Orgs[1].VDCs[0].Name = "acme-vdc-renamed" })
}

// vms returns the URNs of the VMs in VCD.
func (o *capvcdSetup) vms() []string {
	var ids []string
	state := o.site.Simulator.State()
	for i := range state.VMs {
		ids = append(ids, state.VMs[i].ID)
	}
	return ids
}

// runningVMs returns the URNs of the VMs that are powered on.
func runningVMs(simulator *vcdsim.Simulator) []string { return vmsInState(simulator, vcdsim.PoweredOn) }

// vmsInState returns the URNs of the VMs with a power status.
func vmsInState(simulator *vcdsim.Simulator, status vcdsim.Status) []string {
	var ids []string
	state := simulator.State()
	for i := range state.VMs {
		if state.VMs[i].Status == status {
			ids = append(ids, state.VMs[i].ID)
		}
	}
	return ids
}

// changesOf lists the requests since a time that changed any of the given VMs.
func changesOf(simulator *vcdsim.Simulator, vms []string, since time.Time) []string {
	var changes []string
	for _, r := range simulator.Requests() {
		if !r.Changes() || r.Time.Before(since) {
			continue
		}
		for _, id := range vms {
			if strings.Contains(r.Path, id[strings.LastIndex(id, ":")+1:]) {
				changes = append(changes, r.Method+" "+r.Path)
			}
		}
	}
	return changes
}

// replace installs this provider over CAPVCD.
func (o *capvcdSetup) replace() {
	o.t.Helper()
	ours, err := builtProduct()
	o.Expect(err).NotTo(HaveOccurred())
	o.ours, err = o.stack.InstallProvider(o.t.Context(), stack.ProviderInstall{
		ComponentsYAML: ours.components,
		ManagerBinary:  ours.manager,
		Version:        framework.Version,
		Env:            o.site.Workloads.Env(),
	})
	o.Expect(err).NotTo(HaveOccurred())
	o.Expect(o.ours.Start(o.t.Context())).To(Succeed())
}

// logMemory logs the memory of a program.
func logMemory(t *testing.T, program string, pid int) {
	t.Helper()
	used, err := memory.Of(pid)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Logf("memory of %s: %s", program, used)
}

// trustSite adds the certificate authority of the simulated VCD to the identity of the cluster. CAPVCD does not verify
// certificates.
func trustSite(ctx context.Context, g Gomega, c client.Client, authority []byte) {
	trustSiteIn(ctx, g, c, authority, namespace)
}

func trustSiteIn(ctx context.Context, g Gomega, c client.Client, authority []byte, in string) {
	identity := &infrav1.VCDIdentity{}
	key := client.ObjectKey{Namespace: in, Name: clusterName + "-user"}
	g.Expect(c.Get(ctx, key, identity)).To(Succeed())
	if identity.Spec.TLS.CABundle == "" {
		identity.Spec.TLS.CABundle = string(authority)
		g.Expect(c.Update(ctx, identity)).To(Succeed())
	}
}

// awaitReady waits until the cluster and its machines are Ready.
func (o *capvcdSetup) awaitReady(machines int) {
	o.t.Helper()
	o.Eventually(func(g Gomega) {
		trustSite(o.t.Context(), g, o.client, o.site.Simulator.CA())
		expectReady(o.t.Context(), g, o.client, machines)
	}, timeout, "500ms").Should(Succeed())
}

// expectReady checks that the cluster and all its machines are Ready.
func expectReady(ctx context.Context, g Gomega, c client.Client, machines int) {
	vcdCluster := &infrav1.VCDCluster{}
	g.Expect(c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: clusterName}, vcdCluster)).To(Succeed())
	for _, condition := range []string{clusterv1.ReadyCondition, infrav1.AdoptedCondition} {
		g.Expect(conditions.Get(vcdCluster, condition)).To(HaveField("Status", metav1.ConditionTrue), condition)
	}
	list := &infrav1.VCDMachineList{}
	g.Expect(c.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	g.Expect(list.Items).To(HaveLen(machines))
	for i := range list.Items {
		g.Expect(conditions.Get(&list.Items[i], clusterv1.ReadyCondition)).To(
			HaveField("Status", metav1.ConditionTrue), list.Items[i].Name)
	}
}

func (o *capvcdSetup) scaleWorkers(replicas int) {
	o.t.Helper()
	deployment := &clusterv1.MachineDeployment{}
	deployment.Namespace = namespace
	deployment.Name = clusterName + "-workers"
	change := fmt.Sprintf(`{"spec": {"replicas": %d}}`, replicas)
	o.Expect(o.client.Patch(o.t.Context(), deployment, client.RawPatch(types.MergePatchType, []byte(change)))).To(Succeed())
}

// rollOut replaces all machines by a rollout.
func (o *capvcdSetup) rollOut() {
	o.t.Helper()
	change := client.RawPatch(types.MergePatchType,
		[]byte(`{"spec": {"rollout": {"after": "`+time.Now().UTC().Format(time.RFC3339)+`"}}}`))
	pools := &clusterv1.MachineDeploymentList{}
	o.Expect(o.client.List(o.t.Context(), pools, client.InNamespace(namespace))).To(Succeed())
	for i := range pools.Items {
		o.Expect(o.client.Patch(o.t.Context(), &pools.Items[i], change)).To(Succeed())
	}
	controlPlane := &unstructured.Unstructured{}
	controlPlane.SetAPIVersion("controlplane.cluster.x-k8s.io/v1beta2")
	controlPlane.SetKind("KubeadmControlPlane")
	controlPlane.SetNamespace(namespace)
	controlPlane.SetName(clusterName + "-control-plane")
	o.Expect(o.client.Patch(o.t.Context(), controlPlane, change)).To(Succeed())
}

// awaitReplaced waits until none of the given VMs are left, and new ones are running.
func (o *capvcdSetup) awaitReplaced(vms []string, machines int) {
	o.t.Helper()
	o.Eventually(func(g Gomega) {
		_ = o.initializeNodes(o.t.Context(), clusterName)
		state := o.site.Simulator.State()
		for i := range state.VMs {
			g.Expect(vms).NotTo(ContainElement(state.VMs[i].ID))
		}
		g.Expect(state.VMs).To(HaveLen(machines))
	}, clusterTimeout, "1s").Should(Succeed())
	o.awaitMachines(machines)
}

// delete deletes the cluster, and checks that none of its objects are left in VCD.
func (o *capvcdSetup) delete() {
	o.t.Helper()
	o.Expect(o.client.Delete(o.t.Context(), clusterObject())).To(Succeed())
	o.expectGone()
}

// expectGone waits until the cluster is gone, and checks that none of its objects are left in VCD.
func (o *capvcdSetup) expectGone() {
	o.t.Helper()
	awaitGone(o.t.Context(), o.WithT, o.client)
	o.Expect(o.site.Left()).To(BeEmpty())
	o.Expect(documents(o.site.Simulator)).To(ConsistOf(o.before))
}

// documents lists virtual services, pools, NAT rules, allocations and entities in VCD.
func documents(simulator *vcdsim.Simulator) []string {
	var all []string
	for _, d := range simulator.State().Documents {
		all = append(all, d.Path+" "+d.ID)
	}
	return all
}

// problems returns the messages of the Ready conditions of the objects that remain during a deletion.
func problems(ctx context.Context, c client.Client) []string {
	found := []string{"the Cluster"}
	vcdCluster := &infrav1.VCDCluster{}
	if c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: clusterName}, vcdCluster) == nil {
		found = append(found, conditions.GetMessage(vcdCluster, clusterv1.ReadyCondition))
	}
	machines := &clusterv1.MachineList{}
	_ = c.List(ctx, machines, client.InNamespace(namespace))
	for i := range machines.Items {
		found = append(found, conditions.GetMessage(&machines.Items[i], clusterv1.MachineDeletingCondition))
	}
	vcdMachines := &infrav1.VCDMachineList{}
	_ = c.List(ctx, vcdMachines, client.InNamespace(namespace))
	for i := range vcdMachines.Items {
		found = append(found, conditions.GetMessage(&vcdMachines.Items[i], clusterv1.ReadyCondition))
	}
	return found
}

// awaitGone waits until the cluster is gone from the management cluster.
func awaitGone(ctx context.Context, g *WithT, c client.Client) {
	g.Eventually(func() []string {
		if apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(clusterObject()), clusterObject())) {
			return nil
		}
		return problems(ctx, c)
	}, clusterTimeout, "500ms").Should(BeNil())
}
