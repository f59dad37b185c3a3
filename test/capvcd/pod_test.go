// SPDX-License-Identifier: Apache-2.0

package capvcd

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack"
)

// accountDir is the folder with the token of the service account in a container.
const accountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// A pod runs the program of a Deployment in an environment like that of kubelet: a root directory with volumes of
// ConfigMaps and Secrets, environment variables, and the token of its service account.
type pod struct {
	*WithT

	t          *testing.T
	cluster    *stack.Stack
	deployment *appsv1.Deployment
	program    string   // path of a static program on this machine
	args       []string // appended to those of the Deployment
	command    *exec.Cmd
	ended      chan struct{}
}

// startPod runs the first container of a Deployment. It runs until stop is called or the test ends.
func startPod(t *testing.T, in *stack.Stack, deployment *appsv1.Deployment, program string, args ...string) *pod {
	t.Helper()
	p := &pod{
		WithT:      NewWithT(t),
		t:          t,
		cluster:    in,
		deployment: deployment,
		program:    program,
		args:       args,
	}
	p.start()
	t.Cleanup(p.stop)
	return p
}

func (p *pod) container() *corev1.Container { return &p.deployment.Spec.Template.Spec.Containers[0] }

// start runs the program in a new root directory with the current contents of its volumes.
func (p *pod) start() {
	p.t.Helper()
	root := p.t.TempDir()
	inside := p.container().Command[0]
	content, err := os.ReadFile(p.program)
	p.Expect(err).NotTo(HaveOccurred())
	p.write(root, inside, content, 0o700)
	for _, mount := range p.container().VolumeMounts {
		for name, content := range p.volume(mount.Name) {
			p.write(root, filepath.Join(mount.MountPath, name), content, 0o600)
		}
	}
	p.writeAccount(root)

	log, err := os.OpenFile(filepath.Join(p.cluster.LogDir(), p.deployment.Name+".log"),
		os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	p.Expect(err).NotTo(HaveOccurred())
	args := slices.Concat(p.container().Command[1:], p.container().Args, p.args)
	p.command = exec.CommandContext(p.t.Context(), inside, args...)
	p.command.Env = p.environment()
	p.command.Dir = "/"
	p.command.Stdout = log
	p.command.Stderr = log
	p.command.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	p.Expect(p.command.Start()).To(Succeed())
	ended := make(chan struct{})
	p.ended = ended
	command := p.command
	go func() {
		_ = command.Wait()
		_ = log.Close()
		close(ended)
	}()
}

// stop kills the program.
func (p *pod) stop() {
	_ = p.command.Process.Kill()
	<-p.ended
}

func (p *pod) write(root, path string, content []byte, mode os.FileMode) {
	p.t.Helper()
	path = filepath.Join(root, path)
	p.Expect(os.MkdirAll(filepath.Dir(path), 0o750)).To(Succeed())
	p.Expect(os.WriteFile(path, content, mode)).To(Succeed())
}

// volume returns the contents of the files in a volume by name.
func (p *pod) volume(name string) map[string][]byte {
	p.t.Helper()
	volumes := p.deployment.Spec.Template.Spec.Volumes
	i := slices.IndexFunc(volumes, func(v corev1.Volume) bool { return v.Name == name })
	files := map[string][]byte{}
	switch v := volumes[i]; {
	case v.ConfigMap != nil:
		source := &corev1.ConfigMap{}
		p.read(v.ConfigMap.Name, source, ptr.Deref(v.ConfigMap.Optional, false))
		for key, value := range source.Data {
			files[key] = []byte(value)
		}
	case v.Secret != nil:
		source := &corev1.Secret{}
		p.read(v.Secret.SecretName, source, ptr.Deref(v.Secret.Optional, false))
		maps.Copy(files, source.Data)
	}
	return files
}

// read reads an object in the namespace of the pod.
func (p *pod) read(name string, into client.Object, optional bool) {
	p.t.Helper()
	err := p.cluster.Client().Get(p.t.Context(), client.ObjectKey{Namespace: p.deployment.Namespace, Name: name}, into)
	if optional {
		err = client.IgnoreNotFound(err)
	}
	p.Expect(err).NotTo(HaveOccurred())
}

// environment returns the environment of the container. It contains the real address of the API server instead of the
// control plane endpoint.
func (p *pod) environment() []string {
	p.t.Helper()
	var env []string
	for _, e := range p.container().Env {
		if strings.HasPrefix(e.Name, "KUBERNETES_SERVICE_") {
			continue
		}
		env = append(env, e.Name+"="+p.value(e))
	}
	server, err := url.Parse(p.cluster.RESTConfig().Host)
	p.Expect(err).NotTo(HaveOccurred())
	return append(env, "KUBERNETES_SERVICE_HOST="+server.Hostname(), "KUBERNETES_SERVICE_PORT="+server.Port())
}

func (p *pod) value(e corev1.EnvVar) string {
	p.t.Helper()
	switch {
	case e.ValueFrom == nil:
		return e.Value
	case e.ValueFrom.SecretKeyRef != nil:
		source := &corev1.Secret{}
		p.read(e.ValueFrom.SecretKeyRef.Name, source, ptr.Deref(e.ValueFrom.SecretKeyRef.Optional, false))
		return string(source.Data[e.ValueFrom.SecretKeyRef.Key])
	case e.ValueFrom.FieldRef.FieldPath == "metadata.uid":
		return string(p.deployment.UID)
	default:
		return p.deployment.Name
	}
}

// writeAccount writes the token of the service account.
func (p *pod) writeAccount(root string) {
	p.t.Helper()
	clients, err := kubernetes.NewForConfig(p.cluster.RESTConfig())
	p.Expect(err).NotTo(HaveOccurred())
	account := p.deployment.Spec.Template.Spec.ServiceAccountName
	request := &authenticationv1.TokenRequest{}
	token, err := clients.CoreV1().ServiceAccounts(p.deployment.Namespace).CreateToken(p.t.Context(), account, request,
		metav1.CreateOptions{})
	p.Expect(err).NotTo(HaveOccurred(), fmt.Sprintf("token of service account %s", account))
	p.write(root, filepath.Join(accountDir, "token"), []byte(token.Status.Token), 0o600)
	p.write(root, filepath.Join(accountDir, "ca.crt"), p.cluster.RESTConfig().CAData, 0o600)
	p.write(root, filepath.Join(accountDir, "namespace"), []byte(p.deployment.Namespace), 0o600)
}
