// SPDX-License-Identifier: Apache-2.0

package kubevip_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/kubevip"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testtime"
)

func byDaemonSet(c *kubevip.Config) { c.Mode = kubevip.DaemonSet }

// typed returns the object of a kind.
func typed[T any](t *testing.T, objects []unstructured.Unstructured, kind string) *T {
	t.Helper()
	g := NewWithT(t)
	for _, u := range objects {
		if u.GetKind() == kind {
			g.Expect(u.GetNamespace()).To(Equal("kube-system"))
			into := new(T)
			g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, into, true)).To(Succeed())
			return into
		}
	}
	return nil
}

func TestDaemonSetAsksTheAPIServerOfItsNode(t *testing.T) {
	g := NewWithT(t)

	objects, err := kubevip.Objects(config(byDaemonSet, func(c *kubevip.Config) { c.Port = 443 }))

	g.Expect(err).NotTo(HaveOccurred())
	set := typed[appsv1.DaemonSet](t, objects, "DaemonSet")
	pod := set.Spec.Template.Spec
	values := env(&corev1.Pod{Spec: pod})
	g.Expect(values).To(And(HaveKeyWithValue("address", "192.168.100.200"), HaveKeyWithValue("vip_arp", "true"),
		HaveKeyWithValue("KUBERNETES_SERVICE_HOST", "kubernetes"), HaveKeyWithValue("KUBERNETES_SERVICE_PORT", "443")))
	g.Expect(values).NotTo(HaveKey("svc_enable"), "Services belong to the cloud controller manager")
	g.Expect(pod.Volumes).To(HaveLen(1), "not the node's kubeconfig")
	g.Expect(pod.Volumes[0].HostPath.Path).To(Equal("/etc/kube-vip/hosts"))
	g.Expect(pod.ServiceAccountName).To(Equal(typed[corev1.ServiceAccount](t, objects, "ServiceAccount").Name))
	g.Expect(pod.HostNetwork).To(BeTrue())
	g.Expect(pod.Tolerations).To(HaveLen(2))
	g.Expect(typed[rbacv1.Role](t, objects, "Role").Rules).To(HaveExactElements(HaveField("Resources", []string{"leases"})))
	g.Expect(typed[rbacv1.RoleBinding](t, objects, "RoleBinding").RoleRef.Name).To(Equal("kube-vip"))
}

// TestPasswordsAreRemovedWithoutBGP checks for an empty Secret: Cluster API empties the Secret of an earlier
// configuration, but does not delete it.
func TestPasswordsAreRemovedWithoutBGP(t *testing.T) {
	g := NewWithT(t)

	objects, err := kubevip.Objects(config(byDaemonSet))

	g.Expect(err).NotTo(HaveOccurred())
	secret := typed[corev1.Secret](t, objects, "Secret")
	g.Expect(secret).NotTo(BeNil())
	g.Expect(secret.Name).To(Equal(kubevip.PeersSecret))
	g.Expect(secret.Data).To(BeEmpty())
}

func TestDaemonSetReadsBGPPasswordsFromASecret(t *testing.T) {
	g := NewWithT(t)

	objects, err := kubevip.Objects(config(byDaemonSet, byBGP))

	g.Expect(err).NotTo(HaveOccurred())
	secret := typed[corev1.Secret](t, objects, "Secret")
	g.Expect(string(secret.Data[kubevip.PeersKey])).To(HavePrefix("192.168.100.1:65000:s3cret$(port):false,"))
	set := typed[appsv1.DaemonSet](t, objects, "DaemonSet")
	g.Expect(set.Spec.Template.Spec.Containers[0].Env).To(ContainElement(corev1.EnvVar{
		Name: "bgp_peers",
		ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: secret.Name},
			Key:                  kubevip.PeersKey,
		}},
	}))
}

// TestTheDaemonSetDoesNotUseTheProxy checks NO_PROXY, because no proxy resolves the API server name that kube-vip uses.
func TestTheDaemonSetDoesNotUseTheProxy(t *testing.T) {
	g := NewWithT(t)

	objects, err := kubevip.Objects(config(byDaemonSet))

	g.Expect(err).NotTo(HaveOccurred())
	pods := typed[appsv1.DaemonSet](t, objects, "DaemonSet").Spec.Template
	g.Expect(pods.Labels).To(HaveKeyWithValue(addons.PodProxyInjectLabel, "false"))
}

func TestPodsRestartWhenBGPPeersChange(t *testing.T) {
	g := NewWithT(t)
	annotations := func(mods ...func(*kubevip.Config)) map[string]string {
		objects, err := kubevip.Objects(config(append([]func(*kubevip.Config){byDaemonSet}, mods...)...))
		g.Expect(err).NotTo(HaveOccurred())
		return typed[appsv1.DaemonSet](t, objects, "DaemonSet").Spec.Template.Annotations
	}
	other := func(c *kubevip.Config) { c.BGP.Peers[0].Password = "another" }

	g.Expect(annotations(byBGP)).To(Equal(annotations(byBGP)))
	g.Expect(annotations(byBGP, other)).NotTo(Equal(annotations(byBGP)))
	g.Expect(annotations()).To(BeEmpty())
}

func TestJoiningNodesLeaveKubeVIPToTheDaemonSet(t *testing.T) {
	g := NewWithT(t)
	n := newNode(t, map[string]string{joinFile: joinConfiguration}, byDaemonSet)

	n.mustRun(kubevip.KeyPrepare)
	n.write(successFile, "success\n")
	n.mustRun(kubevip.KeyCleanup)

	g.Expect(n.has(manifestFile)).To(BeFalse())
	g.Expect(n.has("etc/kube-vip/hosts")).To(BeTrue(), "the static pod mounts them")
	g.Expect(n.has(handoverUnit)).To(BeFalse())
}

const (
	handoverUnit = "etc/systemd/system/kube-vip-handover.service"
	systemctlLog = "systemctl.log"
)

func TestTheFirstNodeHandsOverToTheDaemonSet(t *testing.T) {
	g := NewWithT(t)
	n := newNode(t, map[string]string{initFile: initConfiguration}, byDaemonSet)
	n.program("systemctl", `echo "$@" >>`+n.root+"/"+systemctlLog)
	n.program("kubectl", kubectlOf("printf True", "date +%N"))
	n.program("sleep", brief)

	n.mustRun(kubevip.KeyPrepare)
	n.mustRun(kubevip.KeyCleanup)
	g.Expect(n.has(handoverUnit)).To(BeFalse(), "kubeadm may run again")
	n.write(successFile, "success\n")
	n.mustRun(kubevip.KeyCleanup)

	g.Expect(n.read(handoverUnit)).To(And(ContainSubstring("\nExecStart=/etc/kube-vip/cleanup.sh \"\" handover\n"),
		ContainSubstring("\nRestart=on-failure\n")))
	g.Expect(n.read(systemctlLog)).To(ContainSubstring("enable --now --no-block kube-vip-handover.service"))
	g.Expect(n.kubeconfig()).To(Equal(admin))
	g.Expect(n.has(manifestFile)).To(BeTrue(), "until the DaemonSet runs on this node")

	static := n.process("prometheus_server=127.0.0.1:2112")
	daemonSet := n.process("prometheus_server=127.0.0.1:2113")
	ofAUser := n.process("prometheus_server=:2112")

	out, err := n.run(kubevip.KeyCleanup, "handover")

	g.Expect(err).NotTo(HaveOccurred(), out)
	g.Expect(n.has(manifestFile)).To(BeFalse())
	g.Expect(static()).To(Equal("T"), "stopped: it must not remove the virtual IP when the kubelet ends it")
	g.Expect(daemonSet()).NotTo(Equal("T"))
	g.Expect(ofAUser()).NotTo(Equal("T"))
}

// brief replaces sleep, so that no test waits for the times of the lease.
const brief = "exec /bin/sleep 0.1"

// kubectlOf returns a program that responds to requests for pods and for the lease.
func kubectlOf(pods, lease string) string {
	return `case "$*" in *" lease "*) ` + lease + `;; *) ` + pods + `;; esac`
}

func TestTheStaticPodIsKeptWhereTheDaemonSetDoesNotRun(t *testing.T) {
	for name, kubectl := range map[string]string{
		"no pod yet":                          kubectlOf("true", "date +%N"),
		"an unready pod":                      kubectlOf("printf False", "date +%N"),
		"no API server":                       "exit 1",
		"a pod that does not renew the lease": kubectlOf("printf True", "echo 2026-01-01T00:00:00Z"),
		"an unreadable lease":                 kubectlOf("printf True", "exit 1"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			n := newNode(t, nil, byDaemonSet)
			n.program("kubectl", kubectl)
			n.program("sleep", brief)
			static := n.process("prometheus_server=127.0.0.1:2112")

			_, err := n.run(kubevip.KeyCleanup, "handover")

			g.Expect(err).To(HaveOccurred(), "systemd retries")
			g.Expect(n.has(manifestFile)).To(BeTrue())
			g.Expect(static()).NotTo(Equal("T"), "it continues")
		})
	}
}

// TestTheVirtualIPIsRestoredAfterTheDaemonSetRemovedIt covers a starting pod, which removes the address. With BGP, the
// static pod does not add it again.
func TestTheVirtualIPIsRestoredAfterTheDaemonSetRemovedIt(t *testing.T) {
	const anInterface = "echo 1: lo inet $5"
	self, err := os.Hostname()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for name, tt := range map[string]struct {
		holder string
		ip     string
		ends   bool
	}{
		"the address is missing":                {self, "true", true},
		"one of two addresses is missing":       {self, `case "$*" in *:*) ;; *) ` + anInterface + `;; esac`, true},
		"the addresses are on this node":        {self, anInterface, false},
		"another node holds the lease":          {"another", "true", false},
		"the endpoint is a name, not addresses": {self, "exit 1", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			n := newNode(t, nil, byDaemonSet, byBGP)
			n.program("kubectl", `case "$*" in
*holderIdentity*) case "$*" in *"--server https://127.0.0.1:6443 --tls-server-name kubernetes"*) echo `+tt.holder+`;; esac;;
*" lease "*) echo 2026-01-01T00:00:00Z;;
*) printf True;;
esac`)
			n.program("ip", tt.ip)
			n.program("sleep", brief)
			static := n.process("prometheus_server=127.0.0.1:2112")
			daemonSet := n.process("prometheus_server=127.0.0.1:2113")

			_, err := n.run(kubevip.KeyCleanup, "handover")

			g.Expect(err).To(HaveOccurred(), "systemd retries")
			g.Expect(n.has(manifestFile)).To(BeTrue(), "the kubelet restarts the static pod")
			if tt.ends {
				g.Eventually(static, testtime.Patience).Should(Equal("Z"))
			} else {
				g.Expect(static()).NotTo(Or(Equal("Z"), Equal("T")))
			}
			g.Expect(daemonSet()).NotTo(Equal("Z"))
		})
	}
}

// process starts a process that looks like kube-vip with a variable. The returned function returns its state: S sleeps,
// T is stopped.
func (n *node) process(variable string) func() string {
	n.t.Helper()
	g := NewWithT(n.t)
	cmd := exec.CommandContext(n.t.Context(), "sleep", "600")
	g.Expect(cmd.Start()).To(Succeed())
	n.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	folder := fmt.Sprintf("proc/%d/", cmd.Process.Pid)
	n.write(folder+"comm", "kube-vip\n")
	n.write(folder+"environ", "PATH=/bin\x00"+variable+"\x00")
	return func() string {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
		g.Expect(err).NotTo(HaveOccurred())
		_, state, _ := strings.Cut(string(stat), ") ")
		return state[:1]
	}
}

// TestTheHandoverDistinguishesBothPods compares the addresses of their metrics, and the lease that the generator wrote.
func TestTheHandoverDistinguishesBothPods(t *testing.T) {
	g := NewWithT(t)
	objects, err := kubevip.Objects(config(byDaemonSet))
	g.Expect(err).NotTo(HaveOccurred())
	data := render(t, config(byDaemonSet))
	static := environment(podOf(t, data).Spec)
	daemonSet := environment(typed[appsv1.DaemonSet](t, objects, "DaemonSet").Spec.Template.Spec)

	script := string(data[kubevip.KeyCleanup])

	g.Expect(script).To(ContainSubstring(`"prometheus_server=` + static["prometheus_server"] + `"`))
	g.Expect(daemonSet["prometheus_server"]).NotTo(Equal(static["prometheus_server"]))
	g.Expect(script).To(ContainSubstring(" lease " + static["vip_leasename"] + " "))
	g.Expect(daemonSet["vip_leasename"]).To(Equal(static["vip_leasename"]))
}

// environment returns the variables of kube-vip.
func environment(pod corev1.PodSpec) map[string]string {
	env := map[string]string{}
	for _, e := range pod.Containers[0].Env {
		env[e.Name] = e.Value
	}
	return env
}
