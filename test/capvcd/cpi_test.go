// SPDX-License-Identifier: Apache-2.0

package capvcd

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/kubeconfig"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/providerid"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/process"
)

// Environment variables with the paths of VMware's programs for workload clusters.
const (
	// cpiVariable contains the path of VMware's cloud controller manager, statically linked.
	cpiVariable = "VMWARE_CPI"
	// csiVariable contains the path of VMware's CSI driver, statically linked.
	csiVariable = "VMWARE_CSI_DRIVER"
)

// cpiFixture is the fixture two-arm with the objects of VMware's CPI and CSI driver.
const cpiFixture = "two-arm-with-cpi"

// fixtureService is the file with the Service in cpiFixture.
const fixtureService = "service.yaml"

const (
	system        = "kube-system"
	cpiAccount    = "cloud-controller-manager"
	cpiRole       = "system:cloud-controller-manager"
	uninitialized = "node.cloudprovider.kubernetes.io/uninitialized"
)

// TestCPIOfAdoptedClusterIsReplaced adopts a cluster with VMware's CPI and CSI driver, and replaces CPI by the cloud
// controller manager of this provider.
func TestCPIOfAdoptedClusterIsReplaced(t *testing.T) {
	requireAll(t)
	if os.Getuid() != 0 {
		t.Skip("runs programs in separate root directories, which needs root")
	}
	r := startReplacement(t)
	r.installProvider()
	r.awaitReady()
	t.Log("adopted")
	objects := r.vcdObjects()
	vms := r.vms()
	secrets := r.vmwareSecrets()

	r.manage()
	r.awaitCloudProvider("False " + infrav1.CloudProviderConflictReason)
	r.Expect(r.vcdObjects()).To(ConsistOf(objects), "nothing should change beside another cloud controller manager")

	t.Log("CPI is found")
	r.removeCPI()
	r.startCCM()
	r.awaitCloudProvider("True")
	r.Eventually(r.serviceRecords, timeout, "250ms").ShouldNot(BeEmpty())
	r.Expect(r.cloudControllerManagers()).To(ConsistOf("Deployment " + addons.DeploymentName))
	r.Expect(r.address()).To(Equal(r.published), "the address of the Service should not change")
	r.Expect(withoutIPSets(r.vcdObjects())).To(ConsistOf(objects), "objects of CPI should be reused")
	r.Expect(r.vms()).To(ConsistOf(vms))

	logMemory(t, "this cloud controller manager", r.ccm.command.Process.Pid)

	t.Log("CPI is replaced")
	worker := r.addWorker()
	r.Eventually(r.documentsWith, timeout, "250ms").WithArguments(r.addressOf(worker)).ShouldNot(BeEmpty(),
		"the Service should reach the new node")
	r.Expect(r.vmwareSecrets()).To(Equal(secrets))
	t.Log("a worker is added")
	r.moveDisk(worker)
	r.removeWorker(r.old)

	t.Log("a worker with a disk is removed")
	r.Expect(r.client.Delete(t.Context(), clusterObject())).To(Succeed())
	r.Eventually(runningVMs, clusterTimeout, "20ms").WithArguments(r.simulator).Should(BeEmpty())
	r.ccm.stop() // It ran on one of the deleted nodes.
	r.expectGone()
	r.Expect(r.simulator.State().Disks).To(HaveLen(1), "volumes should outlive their cluster")
}

// TestFixtureOfCPI writes cpiFixture with VMware's programs.
func TestFixtureOfCPI(t *testing.T) {
	if !*record {
		t.Skip("writes a fixture; runs only with -record")
	}
	requireVMwarePrograms(t)
	r := startReplacement(t)
	r.record()
}

// requireVMwarePrograms skips a test without VMware's programs.
func requireVMwarePrograms(t *testing.T) {
	t.Helper()
	if !hasVMwarePrograms() {
		t.Skipf("needs VMware's cloud controller manager and CSI driver: set %s and %s", cpiVariable, csiVariable)
	}
}

func hasVMwarePrograms() bool { return os.Getenv(cpiVariable) != "" && os.Getenv(csiVariable) != "" }

// A replacement is the adoption of a cluster with its workload cluster: a real API server with Nodes for the VMs, in
// which VMware's CPI and CSI driver run. Without these programs, it uses their recorded objects.
type replacement struct {
	*adoption

	workload  *stack.Stack
	guest     client.Client
	cpi       *pod // nil without the program
	csi       *storageDriver
	ccm       *pod
	old       string // a worker that CAPVCD created
	published string // the address of the Service
}

// volume is the name of the disk of a volume.
const volume = "pvc-3f0c3a52-8a6c-4d6f-9a55-0b3f7d6d2b11"

func startReplacement(t *testing.T) *replacement {
	t.Helper()
	dump := cpiFixture
	if hasVMwarePrograms() {
		dump = "two-arm"
	}
	r := &replacement{adoption: startAdoptionFrom(t, "two-arm", dump)}
	var err error
	r.workload, err = stack.Start(t.Context(), stack.Options{
		Dir:   t.TempDir(),
		Out:   t.Output(),
		Parts: []stack.Part{},
	})
	r.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = r.workload.Stop() })
	r.guest = r.workload.Client()
	r.old = r.capvcdWorker()
	r.storeKubeconfig()
	r.installVMwarePrograms()
	state := r.simulator.State()
	for i := range state.VMs {
		providerID := ""
		if !hasVMwarePrograms() {
			providerID = providerid.Prefix + "urn:vcloud:vm:" + state.VMs[i].ID
		}
		r.createNode(state.VMs[i].Name, providerID)
	}
	if hasVMwarePrograms() {
		r.startVMwarePrograms()
	} else {
		r.createServiceOfFixture()
	}
	r.published = r.address()
	r.Expect(r.published).NotTo(BeEmpty())
	return r
}

// storeKubeconfig stores the kubeconfig of the workload cluster in the management cluster, like the control plane
// provider.
func (r *replacement) storeKubeconfig() {
	r.t.Helper()
	access, err := os.ReadFile(r.workload.Kubeconfig())
	r.Expect(err).NotTo(HaveOccurred())
	owned := kubeconfig.GenerateSecret(clusterObject(), access)
	owned.OwnerReferences = nil
	owned.Type = clusterv1.ClusterSecretType
	r.create(owned)
}

// installVMwarePrograms creates the relevant objects in VMware's manifests of CPI and the CSI driver.
func (r *replacement) installVMwarePrograms() {
	r.t.Helper()
	site := r.simulator.State().Model.Orgs[1]
	shared := map[string]any{"host": r.simulator.URL(), "org": site.Name, "vdc": site.VDCs[0].Name}
	forDisks := map[string]any{"vAppName": clusterName}
	for key, value := range shared {
		forDisks[key] = value
	}
	labels := map[string]string{"app": "x"}
	for _, object := range []client.Object{
		&corev1.Secret{
			ObjectMeta: inSystem(addons.CredentialsName),
			StringData: map[string]string{"username": site.Users[1].Name, "password": site.Users[1].Password},
		},
		&corev1.Secret{
			ObjectMeta: inSystem(addons.ClusterIDName),
			StringData: map[string]string{addons.ClusterIDKey: r.infraID()},
		},
		r.configMap(addons.ConfigMapName, addons.ConfigKey, map[string]any{
			"vcd": shared,
			"loadbalancer": map[string]any{
				"network":                      site.VDCs[0].Networks[0].Name,
				"ports":                        map[string]any{"http": 80, "https": 443},
				"enableVirtualServiceSharedIP": true,
			},
			"clusterid": "",
			"vAppName":  clusterName,
		}),
		r.configMap("vcloud-csi-configmap", "vcloud-csi-config.yaml", map[string]any{
			"vcd":       forDisks,
			"clusterid": r.infraID(),
		}),
		&corev1.ServiceAccount{ObjectMeta: inSystem(cpiAccount)},
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: cpiRole},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: cpiRole},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: cpiRole},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: system, Name: cpiAccount}},
		},
		vmwareDeployment(labels, addons.DeploymentName, "cloud-provider-for-cloud-director:1.6.1", addons.ConfigMapName,
			"--cloud-provider=vmware-cloud-director", "--allow-untagged-cloud=true",
			"--cloud-config="+configDir+"/"+addons.ConfigKey),
		vmwareDeployment(labels, "csi-vcd-controllerplugin", "cloud-director-named-disk-csi-driver:1.6.0",
			"vcloud-csi-configmap", "--cloud-config="+configDir+"/vcloud-csi-config.yaml"),
	} {
		r.Expect(r.guest.Create(r.t.Context(), object)).To(Succeed(), object.GetName())
	}
}

// configDir is the folder with the configuration of VMware's programs.
const configDir = "/etc/kubernetes/vcloud"

func inSystem(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: system, Name: name} }

func (r *replacement) configMap(name, key string, content map[string]any) *corev1.ConfigMap {
	text, err := yaml.Marshal(content)
	r.Expect(err).NotTo(HaveOccurred())
	return &corev1.ConfigMap{
		ObjectMeta: inSystem(name),
		Data:       map[string]string{key: string(text)},
	}
}

// vmwareDeployment returns the Deployment of one of VMware's programs.
func vmwareDeployment(labels map[string]string, name, image, config string, args ...string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: inSystem(name),
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ServiceAccountName: cpiAccount,
					Containers: []corev1.Container{{
						Name:    name,
						Image:   "projects.registry.vmware.com/vmware-cloud-director/" + image,
						Command: append([]string{"/opt/vcloud/bin/program"}, args...),
						Env: []corev1.EnvVar{
							{
								Name: "CLUSTER_ID",
								ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
									LocalObjectReference: corev1.LocalObjectReference{Name: addons.ClusterIDName},
									Key:                  addons.ClusterIDKey,
								}},
							},
							{
								Name:  "NODE_ID",
								Value: "none",
							},
						},
						VolumeMounts: []corev1.VolumeMount{
							{
								Name:      "config",
								MountPath: configDir,
							},
							{
								Name:      "basic-auth",
								MountPath: configDir + "/basic-auth",
							},
						},
					}},
					Volumes: []corev1.Volume{
						{
							Name: "config",
							VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
								LocalObjectReference: corev1.LocalObjectReference{Name: config},
							}},
						},
						{
							Name: "basic-auth",
							VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
								SecretName: addons.CredentialsName,
							}},
						},
					},
				},
			},
		},
	}
}

// createNode registers the node of a VM, like kubelet. Without a provider ID, the node is uninitialized.
func (r *replacement) createNode(name, providerID string) {
	r.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	node.Spec.ProviderID = providerID
	if providerID == "" {
		node.Spec.Taints = []corev1.Taint{{Key: uninitialized, Value: "true", Effect: corev1.TaintEffectNoSchedule}}
	}
	r.Expect(r.guest.Create(r.t.Context(), node)).To(Succeed())
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	r.Expect(r.guest.Status().Update(r.t.Context(), node)).To(Succeed())
}

// service returns a typical Service of a user of CPI.
func service() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeLoadBalancer,
			Selector: map[string]string{"app": "web"},
			Ports: []corev1.ServicePort{
				{
					Name: "http",
					Port: 80,
				},
				{
					Name: "metrics",
					Port: 9090,
				},
			},
		},
	}
}

// startVMwarePrograms starts CPI and waits until it has initialized the nodes and a Service. Then it starts the CSI
// driver and lets it attach a disk.
func (r *replacement) startVMwarePrograms() {
	r.t.Helper()
	r.cpi = r.startProgram(addons.DeploymentName, os.Getenv(cpiVariable), "--port=0", "--secure-port=0")
	r.createInWorkload(service())
	r.Eventually(func(g Gomega) {
		nodes := &corev1.NodeList{}
		g.Expect(r.guest.List(r.t.Context(), nodes)).To(Succeed())
		for i := range nodes.Items {
			g.Expect(nodes.Items[i].Spec.ProviderID).NotTo(BeEmpty(), nodes.Items[i].Name)
		}
		g.Expect(r.address()).NotTo(BeEmpty())
	}, timeout, "250ms").Should(Succeed())

	logMemory(r.t, "CPI", r.cpi.command.Process.Pid)

	ports, err := process.ReservePorts(r.t.Context(), 1)
	r.Expect(err).NotTo(HaveOccurred())
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	r.csi = newStorageDriver(r.t, r.startProgram("csi-vcd-controllerplugin", os.Getenv(csiVariable), "--endpoint=tcp://"+address),
		address)
	r.csi.create(volume)
	r.csi.attach(volume, r.old)
}

// createInWorkload creates an object in the workload cluster.
func (r *replacement) createInWorkload(object client.Object) {
	r.t.Helper()
	r.Expect(r.guest.Create(r.t.Context(), object)).To(Succeed())
}

// startProgram runs the program of a Deployment in the workload cluster.
func (r *replacement) startProgram(deployment, program string, args ...string) *pod {
	r.t.Helper()
	d := &appsv1.Deployment{}
	r.Expect(r.guest.Get(r.t.Context(), client.ObjectKey{Namespace: system, Name: deployment}, d)).To(Succeed())
	return startPod(r.t, r.workload, d, program, args...)
}

// address returns the address in the status of the Service.
func (r *replacement) address() string {
	svc := service()
	r.Expect(r.guest.Get(r.t.Context(), client.ObjectKeyFromObject(svc), svc)).To(Succeed())
	for _, ingress := range svc.Status.LoadBalancer.Ingress {
		return ingress.IP
	}
	return ""
}

// record writes the state of VCD with the objects of VMware's programs, and the Service.
func (r *replacement) record() {
	r.t.Helper()
	r.Expect(os.MkdirAll(fixtureDir(cpiFixture), 0o750)).To(Succeed())
	recordState(r.WithT, r.simulator, cpiFixture)
	svc := service()
	r.Expect(r.guest.Get(r.t.Context(), client.ObjectKeyFromObject(svc), svc)).To(Succeed())
	svc.ManagedFields = nil
	svc.ResourceVersion = ""
	svc.UID = ""
	text, err := yaml.Marshal(svc)
	r.Expect(err).NotTo(HaveOccurred())
	r.Expect(os.WriteFile(filepath.Join(fixtureDir(cpiFixture), fixtureService), text, 0o600)).To(Succeed())
}

func (r *replacement) createServiceOfFixture() {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(fixtureDir(cpiFixture), fixtureService))
	r.Expect(err).NotTo(HaveOccurred())
	svc := &corev1.Service{}
	r.Expect(yaml.Unmarshal(text, svc)).To(Succeed())
	status := svc.Status
	r.createInWorkload(svc)
	svc.Status = status
	r.Expect(r.guest.Status().Update(r.t.Context(), svc)).To(Succeed())
}

// vmwareSecrets returns the Secrets that CPI and the CSI driver share.
func (r *replacement) vmwareSecrets() []corev1.Secret {
	r.t.Helper()
	found := make([]corev1.Secret, 2)
	for i, name := range []string{addons.CredentialsName, addons.ClusterIDName} {
		r.Expect(r.guest.Get(r.t.Context(), client.ObjectKey{Namespace: system, Name: name}, &found[i])).To(Succeed())
	}
	return found
}

// manage enables the managed cloud controller manager, with the credentials of the cluster.
func (r *replacement) manage() {
	r.t.Helper()
	const identity = clusterName + "-user"
	shared := &infrav1.VCDIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: identity}}
	r.Expect(r.client.Patch(r.t.Context(), shared,
		client.RawPatch(types.MergePatchType, []byte(`{"spec":{"shareWithClusters":true}}`)))).To(Succeed())
	managed := &infrav1.VCDCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: clusterName}}
	change := `{"spec":{"cloudProvider":{"mode":"Managed","identityRef":{"kind":"VCDIdentity","name":"` + identity + `"}}}}`
	r.Expect(r.client.Patch(r.t.Context(), managed, client.RawPatch(types.MergePatchType, []byte(change)))).To(Succeed())
}

// awaitCloudProvider waits until the condition CloudProviderReady begins with a status and, optionally, a reason.
func (r *replacement) awaitCloudProvider(state string) {
	r.t.Helper()
	r.Eventually(func() (string, error) {
		c := &infrav1.VCDCluster{}
		err := r.client.Get(r.t.Context(), client.ObjectKey{Namespace: namespace, Name: clusterName}, c)
		condition := conditions.Get(c, infrav1.CloudProviderReadyCondition)
		if condition == nil {
			return "", err
		}
		return fmt.Sprintf("%s %s: %s", condition.Status, condition.Reason, condition.Message), err
	}, timeout, "250ms").Should(HavePrefix(state))
}

// removeCPI removes CPI as the message of the condition instructs.
func (r *replacement) removeCPI() {
	r.t.Helper()
	d := &appsv1.Deployment{ObjectMeta: inSystem(addons.DeploymentName)}
	r.Expect(r.guest.Delete(r.t.Context(), d)).To(Succeed())
	if r.cpi != nil {
		r.cpi.stop()
	}
}

// startCCM runs the cloud controller manager that the manager installed.
func (r *replacement) startCCM() {
	r.t.Helper()
	program := filepath.Join(r.t.TempDir(), "ccm")
	r.t.Setenv("CGO_ENABLED", "0")
	r.Expect(framework.Build(r.t.Context(), r.shipped.root, "./cmd/cpi", program)).To(Succeed())
	d := &appsv1.Deployment{}
	r.Eventually(func() error {
		return r.guest.Get(r.t.Context(), client.ObjectKey{Namespace: system, Name: addons.DeploymentName}, d)
	}, timeout, "250ms").Should(Succeed())
	role := &rbacv1.ClusterRole{}
	r.Expect(r.guest.Get(r.t.Context(), client.ObjectKey{Name: cpiRole}, role)).To(Succeed())
	r.Expect(role.Rules).NotTo(ContainElement(HaveField("Resources", ContainElement("*"))), "the rights of CPI should be gone")
	ports, err := process.ReservePorts(r.t.Context(), 1)
	r.Expect(err).NotTo(HaveOccurred())
	r.ccm = r.startProgram(addons.DeploymentName, program, fmt.Sprintf("--secure-port=%d", ports[0]), "--probe-address=",
		"--bind-address=127.0.0.1")
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation,
		Replicas:           ptr.Deref(d.Spec.Replicas, 1),
		UpdatedReplicas:    ptr.Deref(d.Spec.Replicas, 1),
		AvailableReplicas:  ptr.Deref(d.Spec.Replicas, 1),
		ReadyReplicas:      ptr.Deref(d.Spec.Replicas, 1),
	}
	r.Expect(r.guest.Status().Update(r.t.Context(), d)).To(Succeed())
}

// serviceRecords returns the records of Services that our cloud controller manager stores.
func (r *replacement) serviceRecords() (map[string]string, error) {
	records := &corev1.ConfigMap{}
	err := r.guest.Get(r.t.Context(), client.ObjectKey{Namespace: system, Name: "cloud-controller-manager-services"}, records)
	return records.Data, client.IgnoreNotFound(err)
}

// cloudControllerManagers lists the workloads that run a cloud controller manager in the workload cluster.
func (r *replacement) cloudControllerManagers() []string {
	r.t.Helper()
	list := &appsv1.DeploymentList{}
	r.Expect(r.guest.List(r.t.Context(), list)).To(Succeed())
	var found []string
	for i := range list.Items {
		if strings.Contains(list.Items[i].Spec.Template.Spec.Containers[0].Image, addons.Repository) {
			found = append(found, "Deployment "+list.Items[i].Name)
		}
	}
	return found
}

func withoutIPSets(objects []string) []string {
	return slices.DeleteFunc(objects, func(o string) bool { return strings.Contains(o, "firewallGroups") })
}

// documentsWith returns the objects of the cluster in VCD that contain a string value.
func (r *replacement) documentsWith(text string) []string {
	var found []string
	for _, d := range r.simulator.State().Documents {
		if strings.Contains(string(d.Body), r.infraID()) && strings.Contains(string(d.Body), `"`+text+`"`) {
			found = append(found, d.Path+" "+d.ID)
		}
	}
	return found
}

// capvcdWorker returns the name of a worker Machine in the fixture.
func (r *replacement) capvcdWorker() string {
	r.t.Helper()
	machines := &clusterv1.MachineList{}
	r.Expect(r.client.List(r.t.Context(), machines, client.InNamespace(namespace),
		client.HasLabels{clusterv1.MachineDeploymentNameLabel})).To(Succeed())
	r.Expect(machines.Items).NotTo(BeEmpty())
	return machines.Items[0].Name
}

// addWorker creates a Machine like a MachineSet, waits until its node is initialized, and returns its name.
func (r *replacement) addWorker() string {
	r.t.Helper()
	const name = clusterName + "-workers-n8z5c-added"
	machine := &clusterv1.Machine{}
	infra := &infrav1.VCDMachine{}
	bootstrap := &corev1.Secret{}
	for _, like := range []client.Object{machine, infra, bootstrap} {
		r.Expect(r.client.Get(r.t.Context(), client.ObjectKey{Namespace: namespace, Name: r.old}, like)).To(Succeed())
		like.SetName(name)
		like.SetResourceVersion("")
		like.SetUID("")
		like.SetOwnerReferences(nil)
		like.SetFinalizers(nil)
	}
	machine.OwnerReferences = r.clusterAsOwner(namespace)
	machine.Spec.Bootstrap.DataSecretName = ptr.To(name)
	machine.Spec.InfrastructureRef.Name = name
	machine.Spec.ProviderID = ""
	machine.Status = clusterv1.MachineStatus{}
	infra.Spec.ProviderID = ""
	infra.Spec.RecordedState = infrav1.VCDMachineRecordedState{}
	infra.Status = infrav1.VCDMachineStatus{}
	for _, object := range []client.Object{bootstrap, machine, infra} {
		r.create(object)
	}
	r.Eventually(func(g Gomega) {
		g.Expect(r.client.Get(r.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, infra)).To(Succeed())
		g.Expect(conditions.IsTrue(infra, clusterv1.ReadyCondition)).To(BeTrue(),
			conditions.GetMessage(infra, clusterv1.ReadyCondition))
		g.Expect(infra.Spec.ProviderID).NotTo(BeEmpty())
	}, timeout, "250ms").Should(Succeed())
	r.createNode(name, "")
	r.Eventually(func(g Gomega) {
		node := &corev1.Node{}
		g.Expect(r.guest.Get(r.t.Context(), client.ObjectKey{Name: name}, node)).To(Succeed())
		g.Expect(node.Spec.Taints).NotTo(ContainElement(HaveField("Key", uninitialized)))
		g.Expect(node.Spec.ProviderID).To(Equal(infra.Spec.ProviderID))
	}, timeout, "250ms").Should(Succeed(), "the cloud controller manager should initialize the node")
	return name
}

// addressOf returns the internal address of a node.
func (r *replacement) addressOf(name string) string {
	r.t.Helper()
	node := &corev1.Node{}
	r.Expect(r.guest.Get(r.t.Context(), client.ObjectKey{Name: name}, node)).To(Succeed())
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address
		}
	}
	r.t.Fatalf("node %s has no internal address", name)
	return ""
}

// moveDisk restarts the CSI driver and lets it move the disk to another node. Without the driver, the disk stays.
func (r *replacement) moveDisk(to string) {
	r.t.Helper()
	if r.csi == nil {
		r.Expect(r.diskOn(r.old)).To(Equal(volume))
		return
	}
	r.csi.restart()
	r.csi.detach(volume, r.old)
	r.csi.attach(volume, to)
	r.Expect(r.diskOn(to)).To(Equal(volume))
	r.csi.detach(volume, to)
	r.csi.attach(volume, r.old)
}

// diskOn returns the name of the disk that is attached to a VM, or an empty string.
func (r *replacement) diskOn(name string) string {
	state := r.simulator.State()
	for i := range state.VMs {
		if state.VMs[i].Name != name {
			continue
		}
		for _, d := range state.Disks {
			if slices.Contains(d.AttachedTo, state.VMs[i].ID) {
				return d.Name
			}
		}
	}
	return ""
}

// removeWorker deletes the Machine of a worker.
func (r *replacement) removeWorker(name string) {
	r.t.Helper()
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	r.Expect(r.client.Delete(r.t.Context(), machine)).To(Succeed())
	r.Eventually(func() []string {
		var names []string
		state := r.simulator.State()
		for i := range state.VMs {
			names = append(names, state.VMs[i].Name)
		}
		return names
	}, timeout, "250ms").ShouldNot(ContainElement(name))
}
