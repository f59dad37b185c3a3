// SPDX-License-Identifier: Apache-2.0

package hypervisor

// A Stage is how far the first boot of a VM is.
type Stage string

// The stages, in order. Those of kubeadm are only reached by nodes.
const (
	StageOff       Stage = "its VM is off"
	StageBooting   Stage = "its system boots"
	StageCloudInit Stage = "cloud-init configures it"
	StageKubeadm   Stage = "kubeadm runs"
	StageJoined    Stage = "kubelet joined the cluster"
)

// StageOf reads the stage of a VM of a running hypervisor from what its system wrote; empty if there is no such VM.
func StageOf(dir, vm string) Stage {
	f, err := findVM(dir, vm)
	if err != nil {
		return ""
	}
	stage := StageBooting
	if !exists(f.path("pid")) {
		return StageOff
	}
	for _, s := range []struct {
		file  string
		stage Stage
	}{
		{"var/log/cloud-init.log", StageCloudInit},
		{"etc/kubernetes/pki", StageKubeadm},
		{"etc/kubernetes/kubelet.conf", StageJoined},
	} {
		if exists(f.path("upper/" + s.file)) {
			stage = s.stage
		}
	}
	return stage
}
