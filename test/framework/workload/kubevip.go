// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/guest"
)

const manifests = "/etc/kubernetes/manifests/"

// readKubeVIP finds kube-vip's static pod in the files of a control plane node and checks that it would serve the
// endpoint. Without the pod, the endpoint must be served outside the cluster.
func (p *plan) readKubeVIP(u *guest.Userdata) error {
	for _, f := range u.Files {
		if !strings.HasPrefix(f.Path, manifests) || !strings.Contains(f.Content, "kube-vip") {
			continue
		}
		pod := &corev1.Pod{}
		if err := yaml.UnmarshalStrict([]byte(f.Content), pod); err != nil || pod.Kind != "Pod" ||
			len(pod.Spec.Containers) == 0 {
			return fmt.Errorf("%s is not a Pod: kubelet would not start kube-vip", f.Path)
		}
		if err := p.checkKubeVIP(pod, u); err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
		p.kubeVIP = pod
	}
	return nil
}

func (p *plan) checkKubeVIP(pod *corev1.Pod, u *guest.Userdata) error {
	host, port, err := net.SplitHostPort(p.endpoint)
	if err != nil {
		return fmt.Errorf("control plane endpoint %s: %w", p.endpoint, err)
	}
	env := map[string]string{}
	for _, e := range pod.Spec.Containers[0].Env {
		env[e.Name] = e.Value
	}
	// With two address families, kube-vip accepts a list.
	announced := func(address string) bool { return sameHost(address, host) }
	if !slices.ContainsFunc(strings.Split(env["address"], ","), announced) {
		return fmt.Errorf("kube-vip's address %q is not the control plane endpoint %s: the endpoint would not respond",
			env["address"], host)
	}
	if env["port"] != "" && env["port"] != port {
		return fmt.Errorf("kube-vip's port %s is not the control plane endpoint's %s", env["port"], port)
	}
	if env["cp_enable"] != "true" {
		return errors.New("cp_enable is not true: kube-vip would not announce the control plane endpoint")
	}
	return p.checkKubeconfig(pod, u)
}

// checkKubeconfig checks the kubeconfig of kube-vip. Since Kubernetes 1.29, admin.conf has no rights before kubeadm
// init of the first node has finished, so kube-vip must use super-admin.conf there. On other nodes super-admin.conf
// does not exist.
func (p *plan) checkKubeconfig(pod *corev1.Pod, u *guest.Userdata) error {
	direct := false
	for _, v := range pod.Spec.Volumes {
		direct = direct || v.HostPath != nil && strings.HasSuffix(v.HostPath.Path, "super-admin.conf")
	}
	switch {
	case !p.init && direct:
		return errors.New("kube-vip mounts super-admin.conf, which exists on the first control plane only")
	case p.init && !direct && !mentions(u, "super-admin.conf"):
		return errors.New("kube-vip uses admin.conf, which has no rights before kubeadm init is through, and no command changes it to super-admin.conf: the endpoint would not respond and kubeadm init would time out")
	default:
		return nil
	}
}

// mentions reports whether a command, or a file that a command refers to, contains text.
func mentions(u *guest.Userdata, text string) bool {
	for _, command := range u.Commands {
		if strings.Contains(command, text) {
			return true
		}
		for _, f := range u.Files {
			if strings.Contains(command, f.Path) && strings.Contains(f.Content, text) {
				return true
			}
		}
	}
	return false
}

func sameHost(a, b string) bool {
	ipA := net.ParseIP(a)
	ipB := net.ParseIP(b)
	if ipA != nil && ipB != nil {
		return ipA.Equal(ipB)
	}
	return strings.EqualFold(a, b)
}
