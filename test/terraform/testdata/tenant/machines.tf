# SPDX-License-Identifier: Apache-2.0

resource "vcd_vapp" "app" {
  name        = "tf-app"
  description = "Application, revision ${var.revision}"
  power_on    = true

  metadata_entry {
    key         = "stage"
    value       = "test ${var.revision}"
    type        = "MetadataStringValue"
    user_access = "READWRITE"
    is_system   = false
  }
}

resource "vcd_vapp_access_control" "app" {
  vapp_id              = vcd_vapp.app.id
  shared_with_everyone = false

  shared_with {
    user_id      = vcd_org_user.operator.id
    access_level = var.revision > 1 ? "Change" : "ReadOnly"
  }
}

resource "vcd_vapp_network" "inner" {
  vapp_name              = vcd_vapp.app.name
  name                   = "tf-inner"
  description            = "Inside, revision ${var.revision}"
  gateway                = "192.168.212.1"
  prefix_length          = "24"
  dns1                   = "192.168.212.1"
  dns_suffix             = "inner.example"
  reboot_vapp_on_removal = true

  static_ip_pool {
    start_address = "192.168.212.10"
    end_address   = "192.168.212.99"
  }
  dhcp_pool {
    start_address = "192.168.212.150"
    end_address   = "192.168.212.199"
  }
}

resource "vcd_vapp_org_network" "backend" {
  vapp_name              = vcd_vapp.app.name
  org_network_name       = vcd_network_isolated_v2.backend.name
  reboot_vapp_on_removal = true
}

resource "vcd_vapp_org_network" "app" {
  for_each               = local.gateways
  vapp_name              = vcd_vapp.app.name
  org_network_name       = vcd_network_routed_v2.app[each.key].name
  reboot_vapp_on_removal = true
}

resource "vcd_independent_disk" "data" {
  name            = "tf-data"
  description     = "Data, revision ${var.revision}"
  size_in_mb      = 1024 * var.revision
  bus_type        = "SCSI"
  bus_sub_type    = "VirtualSCSI"
  storage_profile = "standard"

  metadata_entry {
    key         = "backup"
    value       = "daily ${var.revision}"
    type        = "MetadataStringValue"
    user_access = "READWRITE"
    is_system   = false
  }
}

resource "vcd_vapp_vm" "web" {
  vapp_name        = vcd_vapp.app.name
  name             = "tf-web"
  description      = "Web server, revision ${var.revision}"
  computer_name    = "tf-web"
  vapp_template_id = vcd_catalog_vapp_template.node.id
  memory           = 512 * var.revision
  cpus             = 2
  cpu_cores        = 1
  power_on         = true

  network {
    type               = "org"
    name               = vcd_vapp_org_network.backend.org_network_name
    ip_allocation_mode = "POOL"
    is_primary         = true
  }
  network {
    type               = "vapp"
    name               = vcd_vapp_network.inner.name
    ip_allocation_mode = "MANUAL"
    ip                 = "192.168.212.1${var.revision}"
  }

  disk {
    name        = vcd_independent_disk.data.name
    bus_number  = 1
    unit_number = 0
  }

  customization {
    enabled                    = true
    allow_local_admin_password = true
    auto_generate_password     = true
    initscript                 = "echo revision ${var.revision}"
  }

  guest_properties = {
    "guest.hostname" = "tf-web-${var.revision}"
  }

  metadata_entry {
    key         = "role"
    value       = "web ${var.revision}"
    type        = "MetadataStringValue"
    user_access = "READWRITE"
    is_system   = false
  }
}

resource "vcd_vapp_vm" "empty" {
  vapp_name        = vcd_vapp.app.name
  name             = "tf-empty"
  computer_name    = "tf-empty"
  memory           = 1024
  cpus             = var.revision
  cpu_cores        = 1
  os_type          = "ubuntu64Guest"
  hardware_version = "vmx-19"
  boot_image_id    = vcd_catalog_media.tools.id
  power_on         = false

  network {
    type               = "none"
    ip_allocation_mode = "NONE"
    connected          = false
  }
}

resource "vcd_vm" "alone" {
  name             = "tf-alone"
  description      = "Standalone, revision ${var.revision}"
  computer_name    = "tf-alone"
  vapp_template_id = vcd_catalog_vapp_template.node.id
  memory           = 1024
  cpus             = var.revision
  power_on         = true

  network {
    type               = "org"
    name               = vcd_network_isolated_v2.backend.name
    ip_allocation_mode = "MANUAL"
    ip                 = "192.168.211.50"
    is_primary         = true
  }

  # VCD rejects it with fast provisioning.
  dynamic "override_template_disk" {
    for_each = var.full_clones ? [1] : []
    content {
      bus_type        = "paravirtual"
      size_in_mb      = 40960
      bus_number      = 0
      unit_number     = 0
      storage_profile = "standard"
    }
  }
}

resource "vcd_vm_internal_disk" "scratch" {
  vapp_name       = vcd_vapp.app.name
  vm_name         = vcd_vapp_vm.empty.name
  bus_type        = "paravirtual"
  size_in_mb      = 1024 * var.revision
  bus_number      = 0
  unit_number     = 1
  storage_profile = "standard"
}

resource "vcd_inserted_media" "tools" {
  vapp_name   = vcd_vapp.app.name
  vm_name     = vcd_vapp_vm.web.name
  catalog     = vcd_catalog.images.name
  name        = vcd_catalog_media.tools.name
  eject_force = true
}

resource "vcd_vm_affinity_rule" "apart" {
  name     = "tf-apart"
  polarity = "Anti-Affinity"
  enabled  = true
  required = var.revision > 1
  vm_ids   = [vcd_vapp_vm.web.id, vcd_vapp_vm.empty.id]
}

resource "vcd_security_tag" "web" {
  name   = "tf-web"
  vm_ids = var.revision > 1 ? [vcd_vapp_vm.web.id, vcd_vm.alone.id] : [vcd_vapp_vm.web.id]
}

data "vcd_vm_sizing_policy" "policy" {
  for_each = toset(var.sizing_policy)
  name     = each.key
}

resource "vcd_vm" "sized" {
  for_each         = toset(var.sizing_policy)
  name             = "tf-sized"
  computer_name    = "tf-sized"
  vapp_template_id = vcd_catalog_vapp_template.node.id
  sizing_policy_id = data.vcd_vm_sizing_policy.policy[each.key].id
  power_on         = false

  network {
    type               = "org"
    name               = vcd_network_isolated_v2.backend.name
    ip_allocation_mode = "DHCP"
    is_primary         = true
  }
}

resource "vcd_cloned_vapp" "copy" {
  name        = "tf-copy"
  description = "A copy of the template"
  power_on    = false
  source_id   = vcd_catalog_vapp_template.node.id
  source_type = "template"
}
