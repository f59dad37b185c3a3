// SPDX-License-Identifier: Apache-2.0

package hypervisor

// A Stage is the progress of the first boot of a VM.
type Stage string

// The stages, in order. Only nodes reach those of kubeadm.
const (
	StageOff       Stage = "its VM is off"
	StageBooting   Stage = "its system boots"
	StageCloudInit Stage = "cloud-init configures it"
	StageKubeadm   Stage = "kubeadm runs"
	StageJoined    Stage = "kubelet joined the cluster"
)

// StageOf derives the stage of a VM of a running hypervisor from the files that its system wrote. It returns "" if
// the VM does not exist.
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
