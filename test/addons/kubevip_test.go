// SPDX-License-Identifier: Apache-2.0

package addons_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/tools/record"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	assigner "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/kubevip"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/kubevip"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
)

const (
	// serveVariable makes the test binary run as the web server of a node, which responds with the value.
	serveVariable = "ADDONS_TEST_SERVE"
	// gateway is this machine's address in the network of the nodes, which is part of the range for benchmarks (RFC
	// 2544).
	gateway = "198.18.77.1"
	// takeOverTime is the maximum time until another node announces an address. The lease lasts 15 s.
	takeOverTime = time.Minute
)

// A nodeNetwork is a network of nodes and a client on this machine. Each is a network namespace.
type nodeNetwork struct {
	*WithT

	t      *testing.T
	prefix string // of the names of its namespaces and interfaces
}

// newNodeNetwork creates a network. It skips the test if this process lacks the required permissions.
func newNodeNetwork(t *testing.T) *nodeNetwork {
	t.Helper()
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("creates network namespaces, which needs root; not in short mode")
	}
	n := &nodeNetwork{NewWithT(t), t, fmt.Sprintf("kv%d", os.Getpid())}
	if out, err := exec.CommandContext(t.Context(), "ip", "link", "add", n.prefix, "type", "bridge").CombinedOutput(); err != nil {
		t.Skipf("cannot create a bridge: %v: %s", err, out)
	}
	t.Cleanup(func() { n.ip("link", "delete", n.prefix) })
	n.ip("address", "add", gateway+"/24", "dev", n.prefix)
	n.ip("link", "set", n.prefix, "up")
	return n
}

// ip runs the ip command. It also works in cleanups, after the context of the test is canceled.
func (n *nodeNetwork) ip(args ...string) string {
	out, err := exec.Command("ip", args...).CombinedOutput()
	n.Expect(err).NotTo(HaveOccurred(), "ip %s: %s", strings.Join(args, " "), out)
	return string(out)
}

func (n *nodeNetwork) namespace(name string) string { return n.prefix + "-" + name }

// add adds a host with this machine as its default route.
func (n *nodeNetwork) add(name, address string) {
	in := n.namespace(name)
	n.ip("netns", "add", in)
	n.t.Cleanup(func() { n.ip("netns", "delete", in) })
	outside := n.prefix + name
	n.ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", in)
	n.ip("link", "set", outside, "master", n.prefix, "up")
	for _, command := range [][]string{
		{"link", "set", "lo", "up"},
		{"address", "add", address + "/24", "dev", "eth0"},
		{"link", "set", "eth0", "up"},
		{"route", "add", "default", "via", gateway},
	} {
		n.ip(append([]string{"-netns", in}, command...)...)
	}
}

// start starts a program in the namespace of a host, and returns a function that stops it.
func (n *nodeNetwork) start(host string, env []string, program ...string) (stop func()) {
	n.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", n.namespace(host)}, program...)...)
	command.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	command.Stdout = n.t.Output()
	command.Stderr = n.t.Output()
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	n.Expect(command.Start()).To(Succeed())
	done := make(chan struct{})
	go func() {
		_ = command.Wait() // kube-vip exits with a panic.
		close(done)
	}()
	stop = func() {
		cancel()
		<-done
	}
	n.t.Cleanup(stop)
	return stop
}

// get requests an address as the client. It returns the name of the node that responds, or an empty string.
func (n *nodeNetwork) get(address string) string {
	out, err := exec.CommandContext(n.t.Context(), "ip", "netns", "exec", n.namespace("client"),
		"curl", "--silent", "--noproxy", "*", "--max-time", "2", "http://"+net.JoinHostPort(address, "8080")).Output()
	if err != nil {
		return ""
	}
	return string(out)
}

// announcedBy returns the hardware address to which the client has resolved an address.
func (n *nodeNetwork) announcedBy(address string) string {
	fields := strings.Fields(n.ip("-netns", n.namespace("client"), "neighbor", "show", address))
	for i, field := range fields {
		if field == "lladdr" && i+1 < len(fields) {
			return fields[i+1]
		}
	}
	return ""
}

func (n *nodeNetwork) hardwareAddress(host string) string {
	fields := strings.Fields(n.ip("-netns", n.namespace(host), "link", "show", "eth0"))
	for i, field := range fields {
		if field == "link/ether" {
			return fields[i+1]
		}
	}
	return ""
}

// serveAs responds to all requests with the name of a node.
func serveAs(node string) error {
	server := &http.Server{
		Addr:              ":8080",
		ReadHeaderTimeout: time.Second,
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, node) }),
	}
	return server.ListenAndServe()
}

// forwardToAPIServer returns an address in the network of the nodes that forwards to the API server, which listens only
// on the loopback interface.
func forwardToAPIServer(t *testing.T, g *WithT, apiServer string) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", gateway+":0")
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", apiServer)
			if err != nil {
				_ = from.Close()
				continue
			}
			pipe := func(a, b net.Conn) {
				_, _ = io.Copy(a, b)
				_ = a.Close()
			}
			go pipe(from, to)
			go pipe(to, from)
		}
	}()
	return listener.Addr().String()
}

// A kubeVIPCluster is an API server with kube-vip's objects, and nodes that run kube-vip.
type kubeVIPCluster struct {
	*nodeNetwork

	stack   *stack.Stack
	clients *kubernetes.Clientset
	program string // kube-vip
	env     []string
}

func newKubeVIPCluster(t *testing.T, network *nodeNetwork) *kubeVIPCluster {
	t.Helper()
	s, err := stack.Start(t.Context(), stack.Options{Dir: t.TempDir(), Out: t.Output(), Parts: []stack.Part{}})
	network.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { network.Expect(s.Stop()).To(Succeed()) })
	clients, err := kubernetes.NewForConfig(s.RESTConfig())
	network.Expect(err).NotTo(HaveOccurred())
	objects, err := kubevip.Services(kubevip.ServicesConfig{})
	network.Expect(err).NotTo(HaveOccurred())
	manifest, err := addons.Marshal(objects)
	network.Expect(err).NotTo(HaveOccurred())
	on := cluster{network.WithT, s, t}
	on.kubectl(manifest, "apply")
	network.Expect(on.hasAllFields(manifest)).To(BeTrue(), "the API server should store all applied fields")
	network.Expect(s.AwaitRights(t.Context(), objects...)).To(Succeed())
	out := &kubeVIPCluster{nodeNetwork: network, stack: s, clients: clients, program: filepath.Join(t.TempDir(), "kube-vip")}
	for _, u := range objects {
		if u.GetKind() == "DaemonSet" {
			set := &appsv1.DaemonSet{}
			network.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, set)).To(Succeed())
			for _, v := range set.Spec.Template.Spec.Containers[0].Env {
				out.env = append(out.env, v.Name+"="+v.Value)
			}
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-C", "../../hack/kubevip", "-o", out.program,
		"github.com/kube-vip/kube-vip")
	text, err := build.CombinedOutput()
	network.Expect(err).NotTo(HaveOccurred(), string(text))
	return out
}

// writeKubeconfig writes a kubeconfig with the permissions of kube-vip's pods. It returns the home folder for kube-vip.
func (s *kubeVIPCluster) writeKubeconfig() string {
	seconds := int64(3600)
	token, err := s.clients.CoreV1().ServiceAccounts(addons.Namespace).CreateToken(s.t.Context(), kubevip.ServicesName,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}},
		metav1.CreateOptions{})
	s.Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.LoadFromFile(s.stack.Kubeconfig())
	s.Expect(err).NotTo(HaveOccurred())
	for _, of := range config.Clusters {
		address := strings.TrimPrefix(of.Server, "https://")
		host, _, err := net.SplitHostPort(address)
		s.Expect(err).NotTo(HaveOccurred())
		of.TLSServerName = host
		of.Server = "https://" + forwardToAPIServer(s.t, s.WithT, address)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	home := s.t.TempDir()
	s.Expect(os.MkdirAll(filepath.Join(home, ".kube"), 0o700)).To(Succeed())
	s.Expect(clientcmd.WriteToFile(*config, filepath.Join(home, ".kube", "config"))).To(Succeed())
	return home
}

// startAssigner starts the controller that assigns addresses, which is part of the cloud controller manager.
func (s *kubeVIPCluster) startAssigner() {
	factory := informers.NewSharedInformerFactory(s.clients, 0)
	core := factory.Core().V1()
	broadcaster := record.NewBroadcaster()
	s.t.Cleanup(broadcaster.Shutdown)
	a := assigner.New(assigner.Options{
		Client:      s.clients,
		Namespace:   addons.Namespace,
		Services:    core.Services().Informer(),
		Nodes:       core.Nodes().Lister(),
		NodesSynced: core.Nodes().Informer().HasSynced,
		Recorder:    broadcaster.NewRecorder(s.stack.Client().Scheme(), corev1.EventSource{Component: "test"}),
		Ranges: []assigner.Range{{
			First: netip.MustParseAddr("198.18.77.240"),
			Last:  netip.MustParseAddr("198.18.77.249"),
		}},
	})
	a.Start(s.t.Context())
	factory.Start(s.t.Context().Done())
}

// node adds a node with kube-vip and a web server, and returns a function that stops kube-vip.
func (s *kubeVIPCluster) node(name, address, home string) (stop func()) {
	s.add(name, address)
	self, err := os.Executable()
	s.Expect(err).NotTo(HaveOccurred())
	s.start(name, []string{serveVariable + "=" + name}, self)
	env := append([]string{"HOME=" + home, "cp_namespace=" + addons.Namespace}, s.env...)
	return s.start(name, append(env, "vip_nodename="+name), s.program, "manager")
}

// service creates a Service of type LoadBalancer.
func (s *kubeVIPCluster) service(namespace, name string) *corev1.Service {
	created, err := s.clients.CoreV1().Services(namespace).Create(s.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.ServiceSpec{
			Type:  corev1.ServiceTypeLoadBalancer,
			Ports: []corev1.ServicePort{{Port: 8080}},
		},
	}, metav1.CreateOptions{})
	s.Expect(err).NotTo(HaveOccurred())
	return created
}

// published returns the address in the status of a Service.
func (s *kubeVIPCluster) published(of *corev1.Service) (string, error) {
	now, err := s.clients.CoreV1().Services(of.Namespace).Get(s.t.Context(), of.Name, metav1.GetOptions{})
	if err != nil || len(now.Status.LoadBalancer.Ingress) == 0 {
		return "", err
	}
	return now.Status.LoadBalancer.Ingress[0].IP, nil
}

// TestServiceIsReachableAtItsKubeVIPAddress runs the real kube-vip on two nodes, which are network namespaces, with the
// settings and permissions of its DaemonSet.
func TestServiceIsReachableAtItsKubeVIPAddress(t *testing.T) {
	network := newNodeNetwork(t)
	s := newKubeVIPCluster(t, network)
	s.startAssigner()
	home := s.writeKubeconfig()
	stops := map[string]func(){
		"a": s.node("a", "198.18.77.11", home),
		"b": s.node("b", "198.18.77.12", home),
	}
	s.add("client", "198.18.77.99")
	_, err := s.clients.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
	}, metav1.CreateOptions{})
	s.Expect(err).NotTo(HaveOccurred())

	web := s.service("default", "web")
	s.Eventually(s.published).WithArguments(web).WithTimeout(takeOverTime).Should(Equal("198.18.77.240"))
	s.Eventually(s.get).WithArguments("198.18.77.240").WithTimeout(takeOverTime).Should(BeElementOf("a", "b"))
	node := s.get("198.18.77.240")
	s.Expect(s.announcedBy("198.18.77.240")).To(Equal(s.hardwareAddress(node)))

	same := s.service("shop", "web")
	s.Eventually(s.published).WithArguments(same).WithTimeout(takeOverTime).Should(Equal("198.18.77.241"))
	s.Eventually(s.get).WithArguments("198.18.77.241").WithTimeout(takeOverTime).Should(Equal(node), "one node should announce all addresses")

	other := map[string]string{"a": "b", "b": "a"}[node]
	stops[node]()
	s.Eventually(s.get).WithArguments("198.18.77.240").WithTimeout(takeOverTime).Should(Equal(other))

	s.Expect(s.clients.CoreV1().Services("default").Delete(t.Context(), "web", metav1.DeleteOptions{})).To(Succeed())
	s.Eventually(s.get).WithArguments("198.18.77.240").WithTimeout(takeOverTime).Should(BeEmpty())
	s.Expect(s.get("198.18.77.241")).To(Equal(other))
}
