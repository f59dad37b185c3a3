package hypervisor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// missing returns what this machine lacks.
func missing() error {
	if os.Geteuid() != 0 {
		return errors.New("booting VMs needs root: run as root, or without an images folder")
	}
	for program, pkg := range map[string]string{"systemd-nspawn": "systemd-container", "nsenter": "util-linux"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("booting VMs needs the program %s: install the package %s", program, pkg)
		}
	}
	return missingFilesystems(readFile("/proc/filesystems"))
}

// missingFilesystems returns which kernel features are not in /proc/filesystems.
func missingFilesystems(have string) error {
	if !strings.Contains(have, "\toverlay\n") {
		return errors.New("booting VMs needs a kernel with overlayfs: load the module overlay")
	}
	if !strings.Contains(have, "\tcgroup\n") && !strings.Contains(have, "\tcgroup2\n") {
		return errors.New("booting VMs needs a kernel with control groups")
	}
	return nil
}

// readFile returns what is in a file of the kernel, "" if it cannot be read.
func readFile(path string) string {
	data, err := os.ReadFile(path) //nolint:gosec // constants, and files of this package
	if err != nil {
		return ""
	}
	return string(data)
}
